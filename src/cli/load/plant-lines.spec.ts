import { Readable } from 'node:stream';
import { describe, expect, it } from '@jest/globals';
import { readPlantLines } from './plant-lines.js';

const LINE = Buffer.from(`${'a'.repeat(1023)}\n`);

/** Parts of one line, 33 MB together. */
const LINE_PARTS = Array<Buffer>(3).fill(Buffer.alloc(11 * 1024 * 1024, 'a'));

describe('readPlantLines', () => {
  it.each(['CSV', 'NDJSON'])(
    'counts the lines and the bytes of %s, also before the first plant',
    async (format) => {
      const lines =
        format === 'CSV'
          ? ['id,name', '1,é', '2,🌱']
          : ['{"id":1,"name":"é"}', '{"id":2,"name":"🌱"}'];
      const blocks = ['\n', '\n', '\n', ...lines.map((line) => `${line}\n`)].map((text) =>
        Buffer.from(text),
      );
      const plants = await Array.fromAsync(readPlantLines(Readable.from(blocks), 'plants'));
      const size = Buffer.concat(blocks).length;
      const first = format === 'CSV' ? 5 : 4;
      expect(plants.map(({ line }) => line)).toEqual([first, first + 1]);
      expect(plants.map(({ end }) => end)).toEqual([size - blocks.at(-1)!.length, size]);
    },
  );

  it.each([
    ['CSV', 'id,name\n1,', 2],
    ['NDJSON', '{"id":1,"name":"a"}\n{"id":2,"name":"b"}\n{"id":3,"name":"', 3],
  ])('refuses a line of more than 32 MB in %s', async (_format, start, line) => {
    const file = Readable.from([Buffer.from(start), ...LINE_PARTS]);
    await expect(Array.fromAsync(readPlantLines(file, 'plants'))).rejects.toThrow(
      new RegExp(`^plants: Line ${line} is too long\\.$`),
    );
  });

  it('reads a line as long as the largest body that a service can accept', async () => {
    const line = `{"id":1,"name":"${'a'.repeat(16 * 1024 * 1024)}"}`;
    const [plant] = await Array.fromAsync(
      readPlantLines(Readable.from([Buffer.from(line)]), 'plants'),
    );
    expect(plant!.json === line).toBe(true);
  });

  it('refuses an id that is left out', async () => {
    const file = Readable.from([Buffer.from('id,name\n,a\n')]);
    const [plant] = await Array.fromAsync(readPlantLines(file, 'plants'));
    expect(plant!.problem).toMatch(/^The id "" is not a 64-bit integer/);
  });

  it('does not hide why a file cannot be read any more', async () => {
    const failure = new Error('a disk that fails');
    const file = async function* () {
      yield Buffer.from('id,name\n1,a\n');
      throw await Promise.resolve(failure);
    };
    await expect(Array.fromAsync(readPlantLines(file(), 'plants'))).rejects.toBe(failure);
  });

  it('reads no more than the limit after a quote that is never closed', async () => {
    let isReadToEnd = false;
    const file = async function* () {
      yield Buffer.from('id,name\n1,"');
      // Many lines, none of which is too long.
      for (let i = 0; i < 36; i++) yield await Promise.resolve(LINE);
      isReadToEnd = true;
    };
    const lines = readPlantLines(file(), 'plants', 32 * LINE.length);
    await expect(Array.fromAsync(lines)).rejects.toThrow(
      /^plants: The plant that begins in line 2 is not CSV: a quote is missing/,
    );
    expect(isReadToEnd).toBe(false);
  });
});
