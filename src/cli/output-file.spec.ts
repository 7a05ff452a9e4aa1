import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../../test/setup/jest/resources.js';
import { OutputFile } from './output-file.js';

const resources = useResources();

it('a file is complete or not there: also if a folder has taken its name meanwhile', async () => {
  const folder = await temporaryFolder(resources);
  const path = join(folder, 'plants.csv');
  const file = new OutputFile(path, 'plants.csv', 'Name another file.');
  file.write('id,name\n');
  await mkdir(path);
  expect(() => file.finish()).toThrow(
    'plants.csv cannot be written: it is a folder. Name another file.',
  );
  expect(await readFile(file.unfinished, 'utf8')).toBe('id,name\n');
  file.discard();
  expect(await readdir(folder)).toEqual(['plants.csv']);
});
