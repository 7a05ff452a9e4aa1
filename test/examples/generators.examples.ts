import { cp, readFile, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { ROOT, runProgram } from '../setup/process/command.js';
import { startService, type TestService } from '../setup/service/service.js';

/** The packages of clients. Those of the service must not hide that a client lacks one. */
const MODULES = join(ROOT, 'test/examples/node_modules');

const BIN = join(MODULES, '.bin');

// They are installed already, so that no test downloads one.
it('the packages that docs/clients.md installs are those of these tests, and of the same major version', async () => {
  const { dependencies } = JSON.parse(
    await readFile(join(ROOT, 'test/examples/package.json'), 'utf8'),
  ) as { dependencies: Record<string, string> };
  const page = await readFile(join(ROOT, 'docs/clients.md'), 'utf8');
  const packages = [...page.matchAll(/^npm install (.+)$/gm)].flatMap(([, words]) =>
    words!.split(' ').filter((word) => !word.startsWith('-')),
  );
  const installed = packages.map((named) => {
    const [name, major] = named.split(/(?<=.)@/);
    const version = dependencies[name!];
    return major === undefined ? version && name : `${name}@${version?.split('.')[0]}`;
  });
  expect(packages).not.toEqual([]);
  expect(installed).toEqual(packages);
});

describe('the generated clients of docs/clients.md', () => {
  let service: TestService;
  let guide: string;
  let folder: string;
  const resources = useResources();

  beforeAll(async () => {
    service = await startService();
    guide = await readFile(join(ROOT, 'docs/clients.md'), 'utf8');
  });
  beforeEach(async () => {
    await service.database.query('TRUNCATE plants');
    folder = await temporaryFolder(resources);
    await symlink(MODULES, join(folder, 'node_modules'));
    await cp(join(ROOT, 'openapi.json'), join(folder, 'openapi.json'));
    await writeFile(join(folder, 'package.json'), '{"type":"module"}');
    await writeFile(join(folder, 'exact-id.ts'), codeIn(guide, 'ts exact-id.ts'));
    await writeFile(join(folder, 'tsconfig.json'), codeIn(guide, 'json tsconfig.json'));
  });
  afterAll(() => service.close());

  /** The first code block of a kind in a text. */
  const codeIn = (text: string, kind: string) =>
    text.split(`\n\`\`\`${kind}\n`)[1]!.split('\n```')[0]!;

  const run = async (program: string, ...args: string[]) => {
    const command = runProgram(
      program,
      args,
      {
        PATH: `${BIN}${delimiter}${process.env['PATH']}`,
        PLANT_STORE_URL: service.url,
        PLANT_STORE_TOKEN: service.token,
      },
      folder,
    );
    const exitCode = await command.exit();
    return { exitCode, output: command.stdout + command.stderr };
  };

  /** Generates a client, checks its types, and runs the code that the guide has for it. */
  const generateAndRun = async (generator: string, edit = (code: string) => code) => {
    const section = guide.split(`\n### ${generator}\n`)[1]!.split('\n### ')[0]!;
    const [, command] = codeIn(section, 'sh').split('\n');
    expect(await run('/bin/sh', '-c', command!.replace('npx ', ''))).toMatchObject({ exitCode: 0 });
    await writeFile(join(folder, 'client.ts'), edit(codeIn(section, 'ts')));
    expect(await run(join(BIN, 'tsc'), '--noUncheckedIndexedAccess')).toEqual({
      exitCode: 0,
      output: '',
    });
    return run(process.execPath, 'built/client.js');
  };

  it.each(['openapi-typescript and openapi-fetch', '@hey-api/openapi-ts', 'oazapfts'])(
    '%s: is generated, fits its types, and stores the largest id',
    async (generator) => {
      expect(await generateAndRun(generator)).toEqual({ exitCode: 0, output: 'Acer negundo\n' });
      expect(await service.storedPlants()).toEqual([
        { id: '9223372036854775807', name: 'Acer negundo', tag: 'Acer' },
      ]);
    },
  );

  it('@hey-api/openapi-ts: sends a bigint as text, which is refused', async () => {
    const asBigInt = (code: string) => code.replace(/exactId\((.*?)\)/, '$1 as unknown as number');
    const { output } = await generateAndRun('@hey-api/openapi-ts', asBigInt);
    expect(output).toMatch(/^40005: /);
    expect(await service.storedPlants()).toEqual([]);
  });
});
