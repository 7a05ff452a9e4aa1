// The formats of files with plants, and the rule about empty values in CSV.

import { extname } from 'node:path';
import { UsageError } from './command-error.js';

export const FORMATS = ['csv', 'ndjson'] as const;

export type Format = (typeof FORMATS)[number];

/**
 * Whether a plant has no value in a column of CSV. Postgres writes nothing for a tag that is missing, and `""` for an empty one.
 * A program that quotes every value, the names of the columns, too, cannot leave one out.
 */
export function isLeftOut(value: string, isQuoted: boolean, isHeaderQuoted: boolean): boolean {
  return value === '' && (!isQuoted || isHeaderQuoted);
}

const EXTENSIONS: Readonly<Record<string, Format>> = {
  '.csv': 'csv',
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
};

/**
 * The format of a file to write. One to read shows its format by its first character.
 *
 * @param file undefined for standard output, which is CSV
 * @throws UsageError when the extension names no format
 */
export function formatOf(file: string | undefined): Format {
  if (file === undefined) return 'csv';
  const format = EXTENSIONS[extname(file).toLowerCase()];
  if (format === undefined) {
    throw new UsageError(
      'The name of the file must end with .csv, .ndjson or .jsonl, or --format must be csv or ndjson.',
    );
  }
  return format;
}
