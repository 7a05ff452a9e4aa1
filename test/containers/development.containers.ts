import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cp, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { makeFolder, runContainer } from './engine.js';

it('the devcontainer has what a build and the tests need', async () => {
  const { image, remoteUser } = JSON.parse(
    await readFile('.devcontainer/devcontainer.json', 'utf8'),
  ) as { image: string; remoteUser: string };
  // The slim variant of the same image, which the other tests have: it has fewer packages.
  const slim = /^FROM (node:\S+)/m.exec(readFileSync('Dockerfile', 'utf8'))![1]!;
  expect(slim).toBe(`${image}-slim`);
  const { path: folder, remove } = await makeFolder();
  try {
    const { stdout } = await promisify(execFile)('git', ['ls-files'], { maxBuffer: 2 ** 24 });
    for (const file of stdout.trim().split('\n')) await cp(file, join(folder, file));
    await promisify(execFile)('chmod', ['-R', 'a+rwX', folder]);
    const options = [
      `--user=${remoteUser}`,
      `--volume=${folder}:/workspace`,
      // What `npm ci` makes. The build of the image runs it in the same slim image.
      `--volume=${resolve('node_modules')}:/workspace/node_modules:ro`,
      '--workdir=/workspace',
    ];
    const command = ['npm', 'test', '--', 'src/plants', 'test/create/create-plant'];
    const container = runContainer(options, command, slim);
    const code = await container.output.exit();
    const { stderr } = container.output;
    await container.remove();
    expect(stderr).toMatch(/Tests: +\d+ passed/);
    expect(code).toBe(0);
  } finally {
    await remove();
  }
});
