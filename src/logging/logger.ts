import { pino, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/** At most this many characters are buffered, for at most this time: a system call for every entry is expensive. */
const BUFFER_LENGTH = 8192;
const FLUSH_INTERVAL_MS = 100;

/**
 * Several workers write to one pipe, where writes of more than PIPE_BUF, 4096 bytes, could mix. The limit is
 * half of that, as a margin for characters of more than one byte.
 */
const WORKER_BUFFER_LENGTH = 2048;

let output: DestinationStream | undefined;

/**
 * One buffered stream for the process. It is flushed when the process exits, even after an error.
 *
 * pino's own buffer (minLength) takes twice the time: with every log entry, pino copies the whole buffer.
 */
function standardOutput(bufferLength: number): DestinationStream {
  if (output === undefined) {
    const destination = pino.destination({ dest: 1, sync: true });
    let buffer = '';
    const flush = () => {
      const text = buffer;
      buffer = '';
      if (text !== '') destination.write(text);
    };
    setInterval(flush, FLUSH_INTERVAL_MS).unref();
    process.once('exit', flush);
    output = {
      write(entry) {
        if (buffer.length + entry.length > bufferLength) flush();
        buffer += entry;
      },
    };
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
    : standardOutput(worker === undefined ? BUFFER_LENGTH : WORKER_BUFFER_LENGTH);
  const base = worker === undefined ? null : { worker };
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, stream);
}
