import { pino, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/**
 * A system call for every line would cost more than the line: this many bytes are written at once, and what
 * there is at the latest after a tenth of a second.
 */
const BUFFER_BYTES = 8192;
const FLUSH_INTERVAL_MS = 100;

/** Less than PIPE_BUF (4096), so that the lines of several processes on one pipe do not mix. */
const WORKER_BUFFER_BYTES = 2048;

let lastTime = { at: 0, text: '' };

/** ISO 8601, written once for all lines of a millisecond. */
function timestamp(): string {
  const at = Date.now();
  if (at !== lastTime.at) lastTime = { at, text: `,"time":"${new Date(at).toISOString()}"` };
  return lastTime.text;
}

let output: DestinationStream | undefined;

/** One for the process: what it still holds is written when the process ends, also by an error. */
function standardOutput(minLength: number): DestinationStream {
  if (output === undefined) {
    const destination = pino.destination({
      dest: 1,
      sync: true,
      minLength,
      periodicFlush: FLUSH_INTERVAL_MS,
    });
    process.once('exit', () => destination.flushSync());
    output = destination;
  }
  return output;
}

/**
 * JSON lines on standard output; on a terminal, lines for people.
 *
 * @param worker the number that every line of a worker carries
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  const options = { level, base: worker === undefined ? null : { worker }, timestamp };
  return process.stdout.isTTY
    ? pino(options, pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss' }))
    : pino(options, standardOutput(worker === undefined ? BUFFER_BYTES : WORKER_BUFFER_BYTES));
}
