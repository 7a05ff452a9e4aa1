// For files of any size: reads blocks of whole lines, and checks that they are UTF-8.

import { isUtf8 } from 'node:buffer';
import { CommandError } from '../command-error.js';

const LINE_FEED = 0x0a;

/**
 * Without the check for UTF-8, names in another encoding would be stored with replacement characters.
 *
 * @param maxLength of a line in bytes
 * @returns blocks of the text that end where a line ends
 * @throws CommandError when a line is too long or no UTF-8
 */
export async function* readWholeLines(
  bytes: AsyncIterable<Buffer>,
  maxLength: number,
): AsyncGenerator<Buffer, void> {
  let line = 1;
  let rest = Buffer.alloc(0);
  for await (const chunk of bytes) {
    const length = chunk.lastIndexOf(LINE_FEED) + 1;
    if (length > 0) {
      const block = Buffer.concat([rest, chunk.subarray(0, length)]);
      if (!isUtf8(block)) throw notUtf8(block, line);
      yield block;
      for (let at = -1; (at = block.indexOf(LINE_FEED, at + 1)) !== -1;) line++;
      rest = Buffer.alloc(0);
    }
    rest = Buffer.concat([rest, chunk.subarray(length)]);
    if (rest.length > maxLength) throw new CommandError(`Line ${line} is too long.`);
  }
  if (!isUtf8(rest)) throw notUtf8(rest, line);
  yield rest;
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
