import { extname } from 'node:path';
import { PLANT_FIELDS } from '../../plants/plant-fields.js';
import { UsageError } from '../command-error.js';

/** How plants are written: as `plants load` reads them. */
export interface ExportFormat {
  /**
   * A statement whose output is the file, to the last byte: Postgres itself writes ids and texts, so nothing of them can be
   * lost on the way.
   */
  readonly sql: string;
  /** Whether there is a header, and a value in quotes may contain line breaks. */
  readonly isCsv: boolean;
}

const TEXTS = PLANT_FIELDS.filter((field) => field !== 'id');

/**
 * Texts are escaped as JSON needs it; all other characters are written as they are stored. A text that a plant does not
 * have is NULL, and so is its part of the line, which `concat` leaves out.
 */
const JSON_LINE = `
  concat('{"id":', id, ${TEXTS.map((field) => `',"${field}":' || to_json(${field})::text`).join(', ')}, '}')`;

export const FORMATS = {
  /** A plant without a tag has nothing after its comma, and an empty tag is `""`. */
  csv: {
    sql: `COPY (SELECT ${PLANT_FIELDS.join()} FROM plants) TO STDOUT (FORMAT csv, HEADER)`,
    isCsv: true,
  },
  /** CSV of one column whose values are never quoted, because JSON has no control characters: they are written as escapes. */
  ndjson: {
    sql: `COPY (SELECT ${JSON_LINE} FROM plants) TO STDOUT (FORMAT csv, DELIMITER E'\\x01', QUOTE E'\\x02')`,
    isCsv: false,
  },
} as const satisfies Record<string, ExportFormat>;

const EXTENSIONS: Readonly<Record<string, ExportFormat>> = {
  '.csv': FORMATS.csv,
  '.ndjson': FORMATS.ndjson,
  '.jsonl': FORMATS.ndjson,
};

/**
 * @param file undefined for standard output, which is CSV
 * @throws UsageError when the extension names no format
 */
export function formatOf(file: string | undefined): ExportFormat {
  if (file === undefined) return FORMATS.csv;
  const format = EXTENSIONS[extname(file).toLowerCase()];
  if (format === undefined) {
    throw new UsageError(
      'The name of the file must end with .csv, .ndjson or .jsonl, or --format must be csv or ndjson.',
    );
  }
  return format;
}
