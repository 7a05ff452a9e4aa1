// For people with a file of a spreadsheet or a database: reads its plants.

import { pipeline, Readable } from 'node:stream';
import { CsvError, parse, type InfoRecord, type Options } from 'csv-parse';
import { parseInt64 } from '../../http/int64.js';
import { PLANT_FIELDS, REQUIRED_FIELDS, TEXT_FIELDS } from '../../plants/plant-fields.js';
import { CommandError } from '../command-error.js';
import { isLeftOut } from '../plant-format.js';
import { readWholeLines } from './whole-lines.js';

/** A plant of the file: either the JSON to send, or the reason why there is none. */
export interface PlantLine {
  /** The number of the line in which it begins, from 1. */
  readonly line: number;
  /** The length of the file up to its end, in bytes. */
  readonly end: number;
  readonly json?: string;
  readonly problem?: string;
}

/** More than the largest BODY_LIMIT. Without a limit, a file without line breaks would fill the memory. */
const MAX_LINE_LENGTH = 32 * 1024 * 1024;

/**
 * Reads plants from CSV, as spreadsheets, databases and `plants export` write it, or from NDJSON. No id is ever read as a number.
 *
 * @param name of the file, for messages
 * @param maxLength of a line and of a plant in bytes
 * @returns nothing if the text is empty, or a header alone
 * @throws CommandError when the text is neither, or no UTF-8
 */
export async function* readPlantLines(
  bytes: AsyncIterable<Buffer>,
  name: string,
  maxLength = MAX_LINE_LENGTH,
): AsyncGenerator<PlantLine> {
  try {
    const blocks = readWholeLines(bytes, maxLength);
    let head = Buffer.alloc(0);
    while (head.toString().trim() === '') {
      const next = await blocks.next();
      if (next.done === true) return;
      head = Buffer.concat([head, next.value]);
    }
    const all = concatenate(head, blocks);
    yield* head.toString().trimStart().startsWith('{')
      ? readJsonLines(all)
      : readCsv(all, maxLength);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    throw new CommandError(`${name}: ${error.message}`, { cause: error });
  }
}

async function* concatenate(head: Buffer, tail: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* tail;
}

async function* readJsonLines(blocks: AsyncIterable<Buffer>): AsyncGenerator<PlantLine> {
  let line = 0;
  let end = 0;
  for await (const block of blocks) {
    for (const text of block.toString().split(/(?<=\n)/)) {
      line++;
      end += Buffer.byteLength(text);
      const json = text.replace(/^\uFEFF|\n$/g, '');
      if (json.trim() !== '') yield { line, end, json };
    }
  }
}

/** null: the value is left out. */
type Values = (string | null)[];

async function* readCsv(
  blocks: AsyncIterable<Buffer>,
  maxLength: number,
): AsyncGenerator<PlantLine> {
  let header: string[] | undefined;
  let isHeaderQuoted = false;
  /** Carriage returns inside values, each of which csv-parse counts as a line. */
  let carriageReturns = 0;
  /**
   * The number of the line after the last record, minus the empty lines before it, which csv-parse counts. After the lines
   * `id,name`, an empty one and `1,a`, it is 3, and one empty line is counted: the next record begins in line 3 + 1, or later.
   */
  let following = 1;
  const options: Options<PlantLine, Values> = {
    bom: true,
    // If csv-parse detected the line break from the first line, a different one would end up in a tag.
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: maxLength,
    cast: (value, { quoting }) => {
      if (header === undefined) isHeaderQuoted ||= quoting;
      return isLeftOut(value, quoting, isHeaderQuoted) ? null : value;
    },
    on_record: (values: Values, info: InfoRecord): PlantLine | undefined => {
      const line = following + info.empty_lines;
      carriageReturns += values.join('').split('\r').length - 1;
      following = info.lines - carriageReturns + 1 - info.empty_lines;
      if (header !== undefined) return { line, end: info.bytes, ...readRow(header, values) };
      header = checkHeader(values.map((name) => name ?? ''));
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
    const line = following + Number(error['empty_lines']);
    // Where a quote is missing, nobody can say where the next plant begins.
    throw new CommandError(
      `The plant that begins in line ${line} is not CSV: a quote is missing, or is not written twice. ` +
        'A value with a comma, a quote or a line break must be like this: "Acer ""Crimson King"", red"',
      { cause: error },
    );
  }
}

const COLUMNS: readonly string[] = PLANT_FIELDS;
const OPTIONAL = COLUMNS.filter((column) => !REQUIRED_FIELDS.includes(column));

/** An unknown column is refused: it may be a mistyped `tag`, and a plant that is stored without its tag stays so. */
function checkHeader(header: string[]): string[] {
  const isKnown = header.every((name) => COLUMNS.includes(name));
  const isUnique = new Set(header).size === header.length;
  if (!isKnown || !isUnique || !REQUIRED_FIELDS.every((name) => header.includes(name))) {
    throw noHeader(header);
  }
  return header;
}

/** @param found the columns of the first line, if it can be read */
function noHeader(found: readonly string[] = []): CommandError {
  const shown = found.length === 0 ? '' : ` It is ${JSON.stringify(found.join(',').slice(0, 80))}.`;
  return new CommandError(
    `The first line must be the header ${COLUMNS.join()} (in lower case, in any order, separated by commas; ` +
      `${OPTIONAL.join(' and ')} may be missing), or a plant as JSON.${shown}`,
  );
}

function readRow(header: string[], values: Values): Pick<PlantLine, 'json' | 'problem'> {
  if (values.length !== header.length) {
    return { problem: 'The line has more or fewer values than the header.' };
  }
  const valueOf = (column: string) => values[header.indexOf(column)];
  const id = valueOf('id') ?? '';
  // `1e3` and `5.0`, which JSON allows, are refused: a spreadsheet that writes 9.22337E+18 has rounded the id.
  if (parseInt64(id) === undefined) {
    const shown = JSON.stringify(id.slice(0, 40));
    return {
      problem: `The id ${shown} is not a 64-bit integer in digits without leading zeros. Spreadsheets change long ids.`,
    };
  }
  const texts = TEXT_FIELDS.map((column) => {
    const missing = REQUIRED_FIELDS.includes(column) ? '' : undefined;
    return [column, valueOf(column) ?? missing] as const;
  });
  return { json: `{"id":${id},${JSON.stringify(Object.fromEntries(texts)).slice(1)}` };
}
