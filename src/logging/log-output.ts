import { pino, type DestinationStream } from 'pino';

/**
 * Entries are buffered, because a system call for every entry is expensive. Writes over 4096 bytes (PIPE_BUF) of several
 * processes to one pipe could mix, so the buffer is written at 2048 characters: the last entry, and characters of several bytes,
 * may be in it, too.
 */
const BUFFER_LENGTH = 2048;
const MAX_WRITE_BYTES = 4096;
const FLUSH_INTERVAL_MS = 100;

/** The most that waits in memory for a program that reads the log too slowly. */
const MAX_BUFFER_BYTES = 1024 * 1024;

/** At the end of the process, how many tenths of a second are waited for a program that reads the log too slowly. */
const WAITS_AT_EXIT = 10;

/**
 * The descriptor of the log in a worker: the standard output of the primary. Every process that shares this would block on a
 * full pipe as soon as one of them made it blocking. Node does so with the descriptors 0 to 2 of a new process, and may do so
 * again when that ends.
 */
export const WORKER_LOG_DESCRIPTOR = 4;

/**
 * The standard output of the service. The service must not stop, and no request must wait, because the log cannot be
 * written: a disk is full, or a program that reads it hangs or has ended. Entries are lost then, and counted.
 */
export class LogOutput implements DestinationStream {
  lostEntries = 0;
  private readonly stream;
  private isFailing = false;
  private waitsLeft = 0;

  /** @param descriptor of the log in this process */
  constructor(descriptor: number) {
    this.stream = pino.destination({
      dest: descriptor,
      sync: true,
      minLength: BUFFER_LENGTH,
      maxWrite: MAX_WRITE_BYTES,
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
