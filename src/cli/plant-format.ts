// The formats of files with plants, and the rule about empty values in CSV.

import { extname } from 'node:path';
import { PLANT_FIELDS, TEXT_FIELDS } from '../plants/plant-fields.js';
import { UsageError } from './command-error.js';

/** `concat` leaves out what is NULL: a text that the plant lacks. */
const JSON_LINE = `
  concat('{"id":', id, ${TEXT_FIELDS.map((field) => `',"${field}":' || to_json(${field})::text`).join(', ')}, '}')`;

/**
 * The statement of each format. Its output is the file, to the last byte: Postgres itself writes ids and texts, so nothing of them
 * can be lost on the way.
 */
export const FORMATS = {
  /** See `isLeftOut` for a plant without a tag. */
  csv: `COPY (SELECT ${PLANT_FIELDS.join()} FROM plants) TO STDOUT (FORMAT csv, HEADER)`,
  /** For Postgres, CSV of one column whose values are never quoted: JSON has no control characters, because it escapes them. */
  ndjson: `COPY (SELECT ${JSON_LINE} FROM plants) TO STDOUT (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02')`,
};

/**
 * Whether a plant has no value in a column of CSV. Postgres writes nothing for a tag that is missing, and `""` for an empty one.
 * A program that quotes every value, the names of the columns, too, cannot leave one out.
 */
export function isLeftOut(value: string, isQuoted: boolean, isHeaderQuoted: boolean): boolean {
  return value === '' && (!isQuoted || isHeaderQuoted);
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  '.csv': FORMATS.csv,
  '.ndjson': FORMATS.ndjson,
  '.jsonl': FORMATS.ndjson,
};

/**
 * The statement for a file to write. One to read shows its format by its first character.
 *
 * @param file undefined for standard output, which is CSV
 * @throws UsageError when the extension names no format
 */
export function formatOf(file: string | undefined): string {
  if (file === undefined) return FORMATS.csv;
  const format = EXTENSIONS[extname(file).toLowerCase()];
  if (format === undefined) {
    throw new UsageError(
      'The name of the file must end with .csv, .ndjson or .jsonl, or --format must be csv or ndjson.',
    );
  }
  return format;
}
