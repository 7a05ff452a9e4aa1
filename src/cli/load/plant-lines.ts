import { pipeline, Readable } from 'node:stream';
import { CsvError, parse, type InfoRecord } from 'csv-parse';
import { CommandError } from '../command-error.js';

/** A plant of the file: either the JSON to send, or the reason why there is none. */
export interface PlantLine {
  /** The number of its (last) line, from 1. */
  readonly line: number;
  /** The length of the file up to its end, in bytes. */
  readonly end: number;
  readonly json?: string;
  readonly problem?: string;
}

/** A record of CSV. */
interface Row {
  readonly id: string;
  readonly name: string;
  readonly tag?: string;
}

/** More than the largest BODY_LIMIT. Without a limit, a file without line breaks would fill the memory. */
const MAX_LINE_LENGTH = 32 * 1024 * 1024;

/** Not `1e3` or `5.0`, which JSON allows: a spreadsheet that writes 9.22337E+18 has rounded the id. */
const ID = /^-?(?:0|[1-9]\d*)$/;

/**
 * Reads plants from CSV or NDJSON, without ever reading an id as a number.
 *
 * @throws CommandError when the text is neither, or no UTF-8
 */
export async function* readPlantLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<PlantLine> {
  const text = decode(bytes);
  let head = '';
  while (head.trim() === '') {
    const next = await text.next();
    if (next.done === true) throw new CommandError('There are no plants: the file is empty.');
    head += next.value;
  }
  const all = concatenate(head, text);
  yield* head.trimStart().startsWith('{') ? readJsonLines(all) : readCsv(all);
}

/** Without `fatal`, names in another encoding would be stored with replacement characters. */
async function* decode(bytes: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const decodeOrFail = (chunk?: Buffer) => {
    try {
      return decoder.decode(chunk, { stream: chunk !== undefined });
    } catch (error) {
      throw new CommandError(
        'The file is not UTF-8. Convert it from its encoding, such as with: iconv -f windows-1252 -t utf-8 FILE',
        { cause: error },
      );
    }
  };
  for await (const chunk of bytes) yield decodeOrFail(chunk);
  yield decodeOrFail();
}

async function* concatenate(head: string, tail: AsyncIterable<string>): AsyncGenerator<string> {
  yield head;
  yield* tail;
}

async function* readJsonLines(text: AsyncIterable<string>): AsyncGenerator<PlantLine> {
  let rest = '';
  let line = 0;
  let end = 0;
  for await (const chunk of concatenate('', text)) {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop()!;
    for (const json of lines) {
      line++;
      end += Buffer.byteLength(json) + 1;
      if (json.trim() !== '') yield { line, end, json };
    }
    if (rest.length > MAX_LINE_LENGTH) throw new CommandError(`Line ${line + 1} is too long.`);
  }
  if (rest.trim() !== '') {
    yield { line: line + 1, end: end + Buffer.byteLength(rest), json: rest };
  }
}

async function* readCsv(text: AsyncIterable<string>): AsyncGenerator<PlantLine> {
  const parser = parse({
    columns: checkHeader,
    info: true,
    // Detected from the first line alone, a line break of the other kind would become a part of a tag.
    record_delimiter: ['\r\n', '\n'],
    relax_column_count: true,
    skip_empty_lines: true,
    max_record_size: MAX_LINE_LENGTH,
  });
  pipeline(Readable.from(text), parser, () => undefined);
  try {
    for await (const next of parser) {
      const { record, info } = next as { record: Row; info: InfoRecord };
      const result =
        // Typed as if it were always there.
        (info.error as CsvError | undefined) === undefined
          ? readRow(record)
          : { problem: 'The line has not as many values as the header.' };
      yield { line: info.lines, end: info.bytes, ...result };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    if (error['lines'] === 1) throw noHeader();
    // Where a quote is missing, nobody can say where the next plant begins.
    throw new CommandError(`The file is not CSV: ${error.message}.`, { cause: error });
  }
}

/** An unknown column is refused: it may be a mistyped `tag`, and a plant that is stored without its tag stays so. */
function checkHeader(header: string[]): string[] {
  const isKnown = header.every((name) => ['id', 'name', 'tag'].includes(name));
  const isUnique = new Set(header).size === header.length;
  if (!isKnown || !isUnique || !header.includes('id') || !header.includes('name')) {
    throw noHeader();
  }
  return header;
}

function noHeader(): CommandError {
  return new CommandError(
    'The first line must be the header id,name,tag (in any order, separated by commas; tag may be missing), or a plant ' +
      'as JSON.',
  );
}

function readRow({ id, name, tag }: Row): Pick<PlantLine, 'json' | 'problem'> {
  if (!ID.test(id)) {
    const shown = JSON.stringify(id.slice(0, 40));
    return {
      problem: `The id ${shown} is not an integer in digits without leading zeros. Spreadsheets change long ids.`,
    };
  }
  const rest = JSON.stringify(tag === '' ? { name } : { name, tag });
  return { json: `{"id":${id},${rest.slice(1)}` };
}
