import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { readPlantLines } from './plant-lines.js';

/** Parts of one line, 33 MB together. */
const LINE_PARTS = Array<Buffer>(3).fill(Buffer.alloc(11 * 1024 * 1024, 'a'));

describe('readPlantLines', () => {
  it.each([
    ['CSV', 'id,name\n1,', 2],
    ['NDJSON', '{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n{"id":3,"name":"', 3],
  ])('refuses a line of more than 32 MB in %s', async (_format, start, line) => {
    const file = Readable.from([Buffer.from(start), ...LINE_PARTS]);
    await expect(Array.fromAsync(readPlantLines(file, 'plants'))).rejects.toThrow(
      new RegExp(`^plants: Line ${line} is too long\\.$`),
    );
  });
});
