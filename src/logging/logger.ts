import { pino, type DestinationStream, type Logger } from 'pino';
import { prettyFactory } from 'pino-pretty';
import type { Config } from '../config/config.js';
import { LogOutput } from './log-output.js';

let output: LogOutput | undefined;

/** Entries that this process could not write to its log. */
export const countLostEntries = (): number => output?.lostEntries ?? 0;

/**
 * Writes JSON to standard output, one log entry a line; on a terminal, text for people.
 *
 * @param worker the number of the worker, for every log entry
 */
export function createLogger({ level }: Config['log'], worker?: number): Logger {
  output ??= new LogOutput();
  const destination = process.stdout.isTTY ? forPeople(output) : output;
  const base = worker === undefined ? null : { worker };
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, destination);
}

function forPeople(output: LogOutput): DestinationStream {
  const toText = prettyFactory({ singleLine: true, translateTime: 'SYS:HH:MM:ss' });
  return {
    write(entry) {
      output.write(toText(entry));
      output.flush();
    },
  };
}
