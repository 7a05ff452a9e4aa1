import type { Writable } from 'node:stream';
import { pino } from 'pino';
import { LOG_FORMAT } from './log-format.js';

/**
 * Writes one entry about what a command has done: a sentence on a terminal, and JSON elsewhere, as in the log of the service.
 *
 * @param fields of the entry, which the sentence contains, too
 */
export function logCommand(
  output: Writable & { readonly isTTY?: boolean },
  fields: Readonly<Record<string, unknown>>,
  sentence: string,
): void {
  if (output.isTTY === true) output.write(`${sentence}\n`);
  else pino(LOG_FORMAT, output).info(fields, sentence);
}
