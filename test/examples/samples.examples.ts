import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { ROOT, runProgram } from '../setup/command.js';
import { startGateway, type Gateway } from '../setup/gateway.js';
import { startService, type StoredPlant, type TestService } from '../setup/service.js';

/** As Debian's package libjackson2-databind-java installs it. */
const JACKSON = ['core', 'annotations', 'databind'].map(
  (name) => `/usr/share/java/jackson-${name}.jar`,
);

const PLANTS: readonly StoredPlant[] = [
  { id: '-9223372036854775808', name: '"Acer" \\ negundo', tag: 'Acer' },
  { id: '0', name: 'Acer', tag: null },
  { id: '9007199254740993', name: 'Ácer 🌱', tag: 'a b' },
  { id: '9223372036854775807', name: 'Acer negundo', tag: 'Acer' },
];

/** A folder for what is generated and compiled. */
let client: string;

interface Sample {
  /** Programs and files that its language needs. */
  readonly needs: readonly string[];
  command(plant: StoredPlant): string[];
}

const argumentsOf = ({ id, name, tag }: StoredPlant) => [id, name, ...(tag === null ? [] : [tag])];
const example = (file: string) => join(ROOT, 'examples', file);
const node = (...args: string[]): Sample => ({
  needs: [],
  command: (plant) => [process.execPath, ...args, ...argumentsOf(plant)],
});

const samples: Record<string, Sample> = {
  'store-plant.js': node(example('store-plant.js')),
  'store-plant.js, without JSON.rawJSON': node(
    '--import=data:text/javascript,delete JSON.rawJSON',
    example('store-plant.js'),
  ),
  'store-plant.ts': {
    needs: [],
    command: (plant) => [process.execPath, join(client, 'store-plant.ts'), ...argumentsOf(plant)],
  },
  'store_plant.py': {
    needs: ['python3'],
    command: (plant) => ['python3', example('store_plant.py'), ...argumentsOf(plant)],
  },
  'StorePlant.java': {
    needs: ['javac', ...JACKSON],
    command: (plant) => [
      'java',
      '-cp',
      [client, ...JACKSON].join(delimiter),
      'StorePlant',
      ...argumentsOf(plant),
    ],
  },
  'store-plant.sh': {
    needs: ['curl'],
    command: ({ id, name, tag }) => [
      'sh',
      example('store-plant.sh'),
      `{"id": ${id}, ${JSON.stringify({ name, tag: tag ?? undefined }).slice(1)}`,
    ],
  },
};

const missingFor = ({ needs }: Sample) => needs.filter((program) => !isInstalled(program));
const isInstalled = (program: string) =>
  program.startsWith('/')
    ? existsSync(program)
    : process.env['PATH']!.split(delimiter).some((folder) => existsSync(join(folder, program)));

let service: TestService;
let gateway: Gateway;

beforeAll(async () => {
  service = await startService();
  client = await mkdtemp(join(tmpdir(), 'plant-store-client-'));
  await symlink(join(ROOT, 'node_modules'), join(client, 'node_modules'));
  await cp(example('store-plant.ts'), join(client, 'store-plant.ts'));
  await writeFile(join(client, 'package.json'), '{"type":"module"}');
  const document = pathToFileURL(join(ROOT, 'openapi.json')).href;
  const types = execFileSync(process.execPath, [example('generate-types.js'), document]);
  await writeFile(join(client, 'plant-store.ts'), types);
  if (missingFor(samples['StorePlant.java']!).length === 0) {
    const options = ['-cp', JACKSON.join(delimiter), '-d', client];
    execFileSync('javac', [...options, example('StorePlant.java')]);
  }
});
beforeEach(async () => {
  gateway = await startGateway(service.url);
});
afterEach(async () => {
  await gateway.close();
  await service.database.query('TRUNCATE plants');
});
afterAll(async () => {
  await rm(client, { recursive: true });
  await service.close();
});

async function run(sample: Sample, plant: StoredPlant, env: Record<string, string> = {}) {
  const [program, ...args] = sample.command(plant);
  const command = runProgram(program!, args, {
    LANG: 'C.UTF-8',
    PLANT_STORE_URL: gateway.url,
    PLANT_STORE_TOKEN: service.token,
    ...env,
  });
  const exitCode = await command.exit();
  return { exitCode, output: command.stdout + command.stderr };
}

it('store-plant.ts fits the types of the document, and with a number as its id it would not', async () => {
  const sample = await readFile(example('store-plant.ts'), 'utf8');
  const rounded = sample
    .replace(/BigInt\(.*?\)/, 'Number(id)')
    .replace(/(?=^.+client\.POST)/m, '// @ts-expect-error: number\n');
  await writeFile(join(client, 'rounded.ts'), rounded);
  const compiler = join(ROOT, 'node_modules/typescript/bin/tsc');
  const modules = ['--module', 'nodenext', '--lib', 'esnext,dom', '--types', 'node'];
  const options = ['--strict', '--noEmit', '--skipLibCheck', ...modules];
  const check = spawnSync(
    process.execPath,
    [compiler, ...options, 'store-plant.ts', 'rounded.ts'],
    {
      cwd: client,
      encoding: 'utf8',
    },
  );
  expect(check).toMatchObject({ status: 0, stdout: '' });
});

/** The names of errors that say nothing to a person who only runs a sample. */
const RAW = /SyntaxError|TypeError|KeyError|JSONDecode|JsonParse|NullPointer|Traceback/;

describe.each(Object.keys(samples))('%s', (name) => {
  const sample = samples[name]!;
  const missing = missingFor(sample);
  const title = (text: string) =>
    missing.length === 0 ? text : `${text} (not installed: ${missing.join(', ')})`;
  const test = missing.length === 0 ? it : it.skip;

  test(title('stores int64 ids exactly'), async () => {
    for (const plant of PLANTS) {
      expect(await run(sample, plant)).toMatchObject({ exitCode: 0 });
    }
    expect(await service.storedPlants()).toEqual(PLANTS);
  });

  test(title('repeats the same plant after a 503, a 429 and a lost response'), async () => {
    const plant = PLANTS[2]!;
    service.proxy.cut();
    const statuses: number[] = [];
    gateway.onResponse = (status) => {
      statuses.push(status);
      if (statuses.length > 1) return;
      service.proxy.restore();
      gateway.faults.push({ status: 429, retryAfter: '2' }, 'lost');
    };
    expect(await run(sample, plant)).toMatchObject({ exitCode: 0 });
    expect(statuses[0]).toBe(503);
    expect(gateway.faults).toEqual([]);
    expect(new Set(gateway.requests.map(({ body }) => body)).size).toBe(1);
    const [, limited, next] = gateway.requests;
    // Timers may be a moment early.
    expect(next!.at - limited!.at).toBeGreaterThan(1900);
    expect(await service.storedPlants()).toEqual([plant]);
  });

  test(
    title('repeats the same plant after a response that is cut off, or with a date to wait for'),
    async () => {
      const date = new Date(Date.now() + 3000).toUTCString();
      gateway.faults.push('cut', { status: 503, retryAfter: date });
      expect(await run(sample, PLANTS[0]!)).toMatchObject({ exitCode: 0 });
      expect(gateway.requests).toHaveLength(3);
      expect(new Set(gateway.requests.map(({ body }) => body)).size).toBe(1);
    },
  );

  test(title('says that an id is taken, or why a request failed'), async () => {
    const [plant] = PLANTS;
    await run(sample, plant!);
    const taken = await run(sample, { ...plant!, name: 'other' });
    expect(taken.exitCode).not.toBe(0);
    expect(taken.output).toMatch(/The id .*is taken\./);
    const unauthorized = await run(sample, plant!, { PLANT_STORE_TOKEN: 'wrong' });
    expect(unauthorized.exitCode).not.toBe(0);
    expect(unauthorized.output).toMatch(/40101|token/);
    expect(await service.storedPlants()).toEqual([plant]);
  });

  test.each([502, 200])(title('says so when a %d is not JSON'), async (status) => {
    // curl repeats a 502 ten times.
    const fault = { status, body: '<html>\n<h1>Oops</h1>' };
    gateway.faults.push(...Array<typeof fault>(11).fill(fault));
    const { exitCode, output } = await run(sample, PLANTS[0]!);
    expect(exitCode).not.toBe(0);
    expect(output).toMatch(
      /Error: No JSON\.|does not respond|\b(502|200): (no JSON|not|<html>)|\) (502|200) <html>/,
    );
    expect(output).not.toMatch(RAW);
    expect(await service.storedPlants()).toEqual([]);
  });

  test(title('names the variable when there is no token'), async () => {
    const { exitCode, output } = await run(sample, PLANTS[0]!, { PLANT_STORE_TOKEN: undefined! });
    expect(exitCode).not.toBe(0);
    expect(output).toMatch(/Set PLANT_STORE_TOKEN|PLANT_STORE_TOKEN: Set it/);
    expect(output).not.toMatch(RAW);
    expect(gateway.requests).toEqual([]);
  });
});
