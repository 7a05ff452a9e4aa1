import { pino, type DestinationStream, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/**
 * A system call for every line would cost more than the line: this many characters are written at once, and what
 * there is at the latest after a tenth of a second.
 */
const BUFFER_LENGTH = 8192;
const FLUSH_INTERVAL_MS = 100;

/**
 * So that the lines of several processes on one pipe do not mix, what is written at once must not exceed PIPE_BUF,
 * 4096 bytes. Half of that in characters leaves room for those that take more than a byte.
 */
const WORKER_BUFFER_LENGTH = 2048;

let lastTime = { at: 0, text: '' };

/** ISO 8601, written once for all lines of a millisecond. */
function timestamp(): string {
  const at = Date.now();
  if (at !== lastTime.at) lastTime = { at, text: `,"time":"${new Date(at).toISOString()}"` };
  return lastTime.text;
}

let output: DestinationStream | undefined;

/**
 * One for the process: what it still holds is written when the process ends, also by an error.
 *
 * pino's destination could gather lines itself (minLength), but copies what it has with every line that comes.
 */
function standardOutput(bufferLength: number): DestinationStream {
  if (output === undefined) {
    const destination = pino.destination({ dest: 1, sync: true });
    let lines = '';
    const flush = () => {
      const text = lines;
      lines = '';
      if (text !== '') destination.write(text);
    };
    setInterval(flush, FLUSH_INTERVAL_MS).unref();
    process.once('exit', flush);
    output = {
      write(line) {
        if (lines.length + line.length > bufferLength) flush();
        lines += line;
      },
    };
  }
  return output;
}

/**
 * JSON lines on standard output; on a terminal, lines for people.
 *
 * @param worker the number that every line of a worker carries
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  const stream: DestinationStream = process.stdout.isTTY
    ? pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss' })
    : standardOutput(worker === undefined ? BUFFER_LENGTH : WORKER_BUFFER_LENGTH);
  return pino({ level, base: worker === undefined ? null : { worker }, timestamp }, stream);
}
