import { pino, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/**
 * Entries are buffered, because a system call for every entry is expensive. The buffer is written at 2048 characters:
 * writes over 4096 bytes (PIPE_BUF) of several workers to one pipe could mix. The difference is for the last entry, and
 * for characters of more than one byte.
 */
const BUFFER_LENGTH = 2048;
const FLUSH_INTERVAL_MS = 100;

let output: DestinationStream | undefined;

/** One buffered stream for the process. It is flushed when the process exits, even after an error. */
function standardOutput(): DestinationStream {
  if (output === undefined) {
    const stream = pino.destination({
      dest: 1,
      sync: true,
      minLength: BUFFER_LENGTH,
      periodicFlush: FLUSH_INTERVAL_MS,
    });
    process.once('exit', () => stream.flush());
    output = stream;
  }
  return output;
}

/**
 * Writes JSON to standard output, one log entry a line; on a terminal, text for people.
 *
 * @param worker the number of the worker, for every log entry
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  const stream: DestinationStream = process.stdout.isTTY
    ? pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss' })
    : standardOutput();
  const base = worker === undefined ? null : { worker };
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, stream);
}
