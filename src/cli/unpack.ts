// Unpacks a file of plants: gzip is read, and files of other kinds are named for what they are.

import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { CommandError } from './command-error.js';

/** All blocks, one after the other. */
export async function* concatenate(
  head: readonly Buffer[],
  tail: AsyncIterable<Buffer>,
): AsyncGenerator<Buffer> {
  yield* head;
  yield* tail;
}

const GZIP = '\x1f\x8b';

/** Files that people take for CSV, recognized by their first bytes. */
const OTHER_KINDS = [
  ['PK\x03\x04', 'a ZIP archive or a workbook (.xlsx, .ods)'],
  ['\xd0\xcf\x11\xe0', 'a workbook (.xls)'],
  ['BZh', 'compressed with bzip2'],
  ['\xfd7zXZ\0', 'compressed with xz'],
  ['(\xb5/\xfd', 'compressed with zstd'],
] as const;

const LONGEST_SIGNATURE = 6;

/**
 * @returns the text: the bytes themselves, or what is in gzip
 * @throws CommandError when the file is of another kind, or its gzip damaged
 */
export async function* unpack(bytes: Readable): AsyncGenerator<Buffer> {
  const chunks = bytes.iterator() as AsyncIterableIterator<Buffer>;
  let head = Buffer.alloc(0);
  while (head.length < LONGEST_SIGNATURE) {
    const next = await chunks.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  const isOf = (signature: string) => head.toString('latin1').startsWith(signature);
  const [, kind] = OTHER_KINDS.find(([signature]) => isOf(signature)) ?? [];
  if (kind !== undefined) {
    throw new CommandError(
      `The file is ${kind}. Save a workbook as CSV (in Excel: "CSV UTF-8"), and unpack any other file: only gzip is read packed.`,
    );
  }
  const all = concatenate([head], chunks);
  if (!isOf(GZIP)) {
    yield* all;
    return;
  }
  const gunzip = createGunzip();
  pipeline(Readable.from(all), gunzip, () => undefined);
  try {
    yield* gunzip as AsyncIterable<Buffer>;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!code.startsWith('Z_')) throw error;
    // The checksum of gzip is at its end.
    const damage = 'damaged, so plants that were stored from it may be wrong, too';
    throw new CommandError(
      `The gzip file is ${code === 'Z_BUF_ERROR' ? 'cut off' : damage}. Copy it again, and check the copy with: gzip -t FILE`,
      { cause: error },
    );
  }
}
