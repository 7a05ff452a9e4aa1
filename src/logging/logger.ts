import { pino, type Logger } from 'pino';
import pretty from 'pino-pretty';
import type { Config } from '../config/config.js';

/** JSON lines on standard output; on a terminal, lines for people. */
export function createLogger({ level }: Config['log']): Logger {
  const options = { level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  return process.stdout.isTTY
    ? pino(options, pretty({ sync: true, singleLine: true, translateTime: 'SYS:HH:MM:ss' }))
    : pino(options);
}
