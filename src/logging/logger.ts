import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/**
 * JSON lines on standard output; on a terminal, lines for people.
 *
 * @param worker the number that every line of a worker carries
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  const base = worker === undefined ? null : { worker };
  const options = { level, base, timestamp: pino.stdTimeFunctions.isoTime };
  return process.stdout.isTTY
    ? pino(options, pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss' }))
    : pino(options);
}
