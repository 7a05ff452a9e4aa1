// Reads the plants of a file: CSV, as spreadsheets, databases and `plants export` write it, or NDJSON; plain, or in gzip.

import { isUtf8 } from 'node:buffer';
import { pipeline, Readable } from 'node:stream';
import { CsvError, parse, type InfoRecord, type Options } from 'csv-parse';
import { bodyInvalid } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import type { JsonValue } from '../http/exact-json.js';
import { parseInt64 } from '../http/int64.js';
import { parseBody } from '../http/json-body.js';
import { validate } from '../http/validate.js';
import { isRequired, NewPlant, PLANT_FIELDS, TEXT_FIELDS } from '../plants/dto/plant.js';
import { CommandError } from './command-error.js';
import { isLeftOut } from './plant-format.js';
import { concatenate, unpack } from './unpack.js';

/** A plant of the file, or the error that a request with it would get. */
export interface PlantLine {
  /** The number of the line in which it ends, from 1. */
  readonly line: number;
  /** The length of the text up to its end, in bytes. */
  readonly end: number;
  readonly plant?: NewPlant;
  readonly error?: ServiceError;
}

/** Without a limit, a file without line breaks would fill the memory. */
const MAX_LINE_BYTES = 32 * 1024 * 1024;

const LINE_FEED = 0x0a;

/**
 * @param name of the file, for messages
 * @returns nothing if the text is empty, or a header alone
 * @throws CommandError when the text is neither CSV nor NDJSON, or no UTF-8
 */
export async function* readPlantLines(bytes: Readable, name: string): AsyncGenerator<PlantLine> {
  try {
    const blocks = readWholeLines(unpack(bytes));
    const head: Buffer[] = [];
    let beginning = '';
    while (beginning === '') {
      const next = await blocks.next();
      if (next.done === true) return;
      head.push(next.value);
      // Without the BOM, which is white space, too.
      beginning = next.value.toString().trim();
    }
    const all = concatenate(head, blocks);
    const firstLine = beginning.split('\n', 1)[0]!.trimEnd();
    if (/^\[|^\{(?:.*[[{,])?$/.test(firstLine)) throw notOnePlantPerLine(firstLine);
    yield* firstLine.startsWith('{') ? readJsonLines(all) : readCsv(all, delimiterOf(firstLine));
  } catch (error) {
    if (error instanceof CommandError) error.message = `${name}: ${error.message}`;
    throw error;
  }
}

function notOnePlantPerLine(firstLine: string): CommandError {
  if (firstLine.endsWith('},')) {
    return new CommandError(
      'JSON must have one plant per line, without a comma after it: remove the comma at the end of each line.',
    );
  }
  const filter = firstLine.startsWith('[') ? "'.[]'" : '.';
  return new CommandError(
    `JSON must have one plant per line. This command writes it so, with jq 1.7 or newer (older ones round long ids): jq -c ${filter} FILE`,
  );
}

/** The rules are those of a request. */
function lineOf(line: number, end: number, read: () => JsonValue): PlantLine {
  try {
    return { line, end, plant: validate(read(), NewPlant) };
  } catch (error) {
    if (error instanceof ServiceError) return { line, end, error };
    throw error;
  }
}

async function* readJsonLines(blocks: AsyncIterable<Buffer>): AsyncGenerator<PlantLine> {
  let line = 0;
  let end = 0;
  for await (const block of blocks) {
    const lines = block.toString().split('\n');
    // A block ends with a line break, unless the file ends without one.
    if (lines.at(-1) === '') lines.pop();
    for (const json of lines) {
      line++;
      end += Buffer.byteLength(json) + 1;
      if (json.trim() !== '') yield lineOf(line, end, () => parseBody(Buffer.from(json)));
    }
  }
}

/** null: the value is left out. */
type Values = (string | null)[];

/** A header has letters alone between its separators. */
const delimiterOf = (firstLine: string): string => /[,;\t]/.exec(firstLine)?.[0] ?? ',';

async function* readCsv(
  blocks: AsyncIterable<Buffer>,
  delimiter: string,
): AsyncGenerator<PlantLine> {
  let header: string[] | undefined;
  /** The number of columns, with those that a spreadsheet adds. */
  let width = 0;
  let isHeaderQuoted = false;
  const options: Options<PlantLine, Values> = {
    bom: true,
    delimiter,
    // If csv-parse detected the line break from the first line, a different one would end up in a tag.
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    skip_records_with_empty_values: true,
    max_record_size: MAX_LINE_BYTES,
    cast: (value, { quoting }) => {
      if (header === undefined) isHeaderQuoted ||= quoting;
      return isLeftOut(value, quoting, isHeaderQuoted) ? null : value;
    },
    on_record: (values: Values, { lines, bytes }: InfoRecord): PlantLine | undefined => {
      if (header !== undefined) {
        return lineOf(lines, bytes, () => plantOf(header!, width, values));
      }
      // The line with which a file names its separator to Excel.
      if (/^sep=/i.test(values[0] ?? '')) return undefined;
      header = checkHeader(values, delimiter);
      width = values.length;
      return undefined;
    },
  };
  // The types do not know that records without columns may become anything.
  const parser = parse(options as object);
  pipeline(Readable.from(blocks), parser, () => undefined);
  try {
    for await (const plant of parser) yield plant as PlantLine;
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (header === undefined) throw noHeader();
    // Where a quote is missing, nobody can say where the next plant begins.
    throw new CommandError(
      `Line ${String(error['lines'])} is not CSV: a quote is missing in it or before it, or is not written twice. ` +
        'A value with a separator, a quote or a line break must be like this: "Acer ""Crimson King"", red"',
      { cause: error },
    );
  }
}

const COLUMNS: readonly string[] = PLANT_FIELDS;
const OPTIONAL = COLUMNS.filter((column) => !isRequired(column));

/**
 * An unknown column is refused: it may be a mistyped `tag`, and a plant that is stored without its tag stays so. A spreadsheet
 * gives the header as many cells as its longest row has.
 *
 * @returns the names of the columns, without the empty ones at the end
 */
function checkHeader(found: Values, delimiter: string): string[] {
  const names = found.map((name) => (name ?? '').trim().toLowerCase());
  const header = names.slice(0, names.findLastIndex((name) => name !== '') + 1);
  const isKnown = header.every((name) => COLUMNS.includes(name));
  const isUnique = new Set(header).size === header.length;
  if (!isKnown || !isUnique || !COLUMNS.filter(isRequired).every((name) => header.includes(name))) {
    throw noHeader(found.join(delimiter));
  }
  return header;
}

/** @param found the first line, if it can be read */
function noHeader(found?: string): CommandError {
  const shown = found === undefined ? '' : ` It is ${JSON.stringify(found.slice(0, 80))}.`;
  return new CommandError(
    `The first line must be the header ${COLUMNS.join()} (in any order, separated by commas, semicolons or tabs; ` +
      `${OPTIONAL.join(' and ')} may be missing), or a plant as JSON.${shown}`,
  );
}

/** @throws ServiceError bodyInvalid */
function plantOf(header: string[], width: number, values: Values): JsonValue {
  const isOfHeader = values.length >= header.length && values.length <= width;
  if (!isOfHeader || values.slice(header.length).some((value) => value?.trim())) {
    throw invalid('The line has more or fewer values than the header.');
  }
  const valueOf = (column: string) => values[header.indexOf(column)];
  const digits = valueOf('id') ?? '';
  const id = parseInt64(digits);
  // `1e3` and `5.0`, which JSON allows, are refused: a spreadsheet that writes 9.22337E+18 has rounded the id.
  if (id === undefined) {
    const shown = JSON.stringify(digits.slice(0, 40));
    throw invalid(
      `The id ${shown} is not a 64-bit integer in digits without leading zeros. Spreadsheets change long ids.`,
    );
  }
  const plant: { [field: string]: JsonValue } = { id };
  for (const field of TEXT_FIELDS) {
    const value = valueOf(field) ?? (isRequired(field) ? '' : undefined);
    if (value !== undefined) plant[field] = value;
  }
  return plant;
}

const invalid = (message: string) => bodyInvalid(message);

/**
 * Without the check for UTF-8, names in another encoding would be stored with replacement characters.
 *
 * @returns blocks of the text that end where a line ends
 * @throws CommandError when a line is too long or no UTF-8
 */
async function* readWholeLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer, void> {
  let line = 1;
  let rest: Buffer[] = [];
  let length = 0;
  for await (const chunk of bytes) {
    const end = chunk.lastIndexOf(LINE_FEED) + 1;
    if (end > 0) {
      const block = Buffer.concat([...rest, chunk.subarray(0, end)]);
      if (!isUtf8(block)) throw notUtf8(block, line);
      yield block;
      for (let at = -1; (at = block.indexOf(LINE_FEED, at + 1)) !== -1;) line++;
      rest = [];
      length = 0;
    }
    rest.push(chunk.subarray(end));
    length += chunk.length - end;
    if (length > MAX_LINE_BYTES) throw new CommandError(`Line ${line} is too long.`);
  }
  const last = Buffer.concat(rest);
  if (!isUtf8(last)) throw notUtf8(last, line);
  yield last;
}

/** @param line the number of the first line of the block */
function notUtf8(block: Buffer, line: number): CommandError {
  // Latin-1 has a character for every byte.
  const lines = block.toString('latin1').split('\n');
  const bad = lines.findIndex((text) => !isUtf8(Buffer.from(text, 'latin1')));
  const isUtf16 = line === 1 && /^(?:\xff\xfe|\xfe\xff)/.test(lines[0]!);
  const problem = isUtf16 ? 'The file is UTF-16' : `Line ${line + bad} is not UTF-8`;
  const encoding = isUtf16 ? 'utf-16' : 'windows-1252';
  return new CommandError(
    `${problem}. Save the file as UTF-8 (in Excel: "CSV UTF-8"), or convert it from its encoding, such as with: ` +
      `iconv -f ${encoding} -t utf-8 FILE`,
  );
}
