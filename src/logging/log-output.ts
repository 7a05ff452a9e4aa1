// The standard output of the service, which never blocks it.

import { pino, type DestinationStream } from 'pino';

const STANDARD_OUTPUT = 1;

/** Entries are buffered, because a system call for every entry is expensive. The buffer is written at this many characters. */
const BUFFER_LENGTH = 2048;
const FLUSH_INTERVAL_MS = 100;

/** The most that waits in memory for a program that reads the log too slowly. */
const MAX_BUFFER_BYTES = 1024 * 1024;

/** At the end of the process, how many tenths of a second are waited for a program that reads the log too slowly. */
const WAITS_AT_EXIT = 10;

/**
 * The standard output of the service. The service must not stop, and no request must wait, because the log cannot be
 * written: a disk is full, or a program that reads it hangs or has ended. Entries are lost then, and counted.
 */
export class LogOutput implements DestinationStream {
  lostEntries = 0;
  private readonly stream;
  private isFailing = false;
  private waitsLeft = 0;

  constructor() {
    this.stream = pino.destination({
      dest: STANDARD_OUTPUT,
      sync: true,
      minLength: BUFFER_LENGTH,
      maxLength: MAX_BUFFER_BYTES,
      periodicFlush: FLUSH_INTERVAL_MS,
      // A full pipe is tried again only when the process ends, because pino blocks it for a tenth of a second each time.
      retryEAGAIN: () => this.waitsLeft-- > 0,
    });
    // After EPIPE, pino's own listener would discard all entries without an event.
    this.stream.removeAllListeners('error');
    // Entries that were not written stay in the buffer, and each flush tries again.
    this.stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      // A reader that is slow may go on, so entries for a full pipe wait in the buffer. After any other error, entries are lost
      // until a write succeeds.
      this.isFailing = code !== 'EAGAIN';
    });
    this.stream.on('write', () => (this.isFailing = false));
    this.stream.on('drop', () => this.lostEntries++);
    // Unlike the shutdown of the service, this event also comes after an error that ends the process.
    process.once('exit', () => {
      this.waitsLeft = WAITS_AT_EXIT;
      this.stream.end();
    });
  }

  write(entry: string): void {
    if (this.isFailing) this.lostEntries++;
    else this.stream.write(entry);
  }

  flush(): void {
    this.stream.flush();
  }
}
