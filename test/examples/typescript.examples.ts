import { execFile } from 'node:child_process';
import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { ROOT } from '../setup/process/command.js';
import { describeSample, example } from './sample.js';

const runFile = promisify(execFile);

const MODULES = join(ROOT, 'test/examples/node_modules');

/** Writes the sample, and the types that it uses, to `folder`, as docs/clients.md says. */
async function prepare(folder: string): Promise<void> {
  await symlink(MODULES, join(folder, 'node_modules'));
  for (const file of ['store-plant.ts', 'generate-types.js']) {
    await cp(example(file), join(folder, file));
  }
  await writeFile(join(folder, 'package.json'), '{"type":"module"}');
  const document = pathToFileURL(join(ROOT, 'openapi.json')).href;
  const types = await runFile(process.execPath, [join(folder, 'generate-types.js'), document]);
  await writeFile(join(folder, 'plant-store.ts'), types.stdout);
}

describeSample('store-plant.ts', {
  prepare,
  command: (folder) => [process.execPath, join(folder, 'store-plant.ts')],
});

const resources = useResources();

it('store-plant.ts fits the types of the document, and with a number as its id it would not', async () => {
  const folder = await temporaryFolder(resources);
  await prepare(folder);
  const sample = await readFile(example('store-plant.ts'), 'utf8');
  const rounded = sample
    .replace(/BigInt\(.*?\)/, 'Number(id)')
    .replace(/(?=^.+Number\(id\))/m, '// @ts-expect-error: number\n');
  await writeFile(join(folder, 'rounded.ts'), rounded);
  const compiler = join(MODULES, 'typescript/bin/tsc');
  const modules = ['--module', 'nodenext', '--lib', 'esnext,dom', '--types', 'node'];
  const options = ['--strict', '--noEmit', '--skipLibCheck', ...modules];
  const check = runFile(process.execPath, [compiler, ...options, 'store-plant.ts', 'rounded.ts'], {
    cwd: folder,
  });
  // Rejected, with the messages of the compiler, if it finds an error.
  expect(await check).toEqual({ stdout: '', stderr: '' });
});
