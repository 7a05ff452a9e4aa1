import { pino, type DestinationStream } from 'pino';

/**
 * Entries are buffered, because a system call for every entry is expensive. The buffer is written at 2048 characters:
 * writes over 4096 bytes (PIPE_BUF) of several workers to one pipe could mix. The difference is for the last entry, and
 * for characters of more than one byte.
 */
const BUFFER_LENGTH = 2048;
const MAX_WRITE_BYTES = 4096;
const FLUSH_INTERVAL_MS = 100;

/** The most that waits in memory for a program that reads the log too slowly. */
const MAX_BUFFER_BYTES = 1024 * 1024;

/** How often the end of the process waits, for a tenth of a second each, for a program that reads the log too slowly. */
const WAITS_AT_EXIT = 10;

/**
 * The standard output of the process. The service must not stop, and no request must wait, because the log cannot be
 * written: a disk is full, or a program that reads it hangs or has ended. Entries are lost then, and counted.
 */
export class LogOutput implements DestinationStream {
  lostEntries = 0;
  private readonly stream;
  private isFailing = false;
  private waitsLeft = 0;

  constructor() {
    this.stream = pino.destination({
      dest: 1,
      sync: true,
      minLength: BUFFER_LENGTH,
      maxWrite: MAX_WRITE_BYTES,
      maxLength: MAX_BUFFER_BYTES,
      periodicFlush: FLUSH_INTERVAL_MS,
      // Each retry would block the process for a tenth of a second.
      retryEAGAIN: () => this.waitsLeft-- > 0,
    });
    // After EPIPE, pino's own listener would discard all entries without an event.
    this.stream.removeAllListeners('error');
    // What was not written stays in the buffer, and each flush tries again.
    this.stream.on('error', ({ code }: NodeJS.ErrnoException) => {
      // A pipe is full for a moment, or for ever. Other errors last.
      this.isFailing = code !== 'EAGAIN';
    });
    this.stream.on('write', () => (this.isFailing = false));
    this.stream.on('drop', () => this.lostEntries++);
    // Also after an error that ends the process.
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

/**
 * Lets a write to standard output fail instead of blocking this process, for when a child process was started: that makes an
 * output that the two share a blocking one, until the child itself has started.
 */
export function unblockOutput(): void {
  // Node has no other interface to it. A file has no handle, and never blocks.
  const { _handle: handle } = process.stdout as { _handle?: { setBlocking?(on: boolean): void } };
  handle?.setBlocking?.(false);
}
