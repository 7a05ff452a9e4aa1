import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { attempt, attemptProgram } from '../setup/process/attempts.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram, type Command } from '../setup/process/command.js';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';
import { queryOnce } from '../setup/database/query-once.js';
import type { StoredPlant } from '../setup/database/stored-plants.js';
import { OPTIONAL_FIELDS } from '../setup/model/plant.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const LOADED: StoredPlant[] = [
  { id: '-9223372036854775808', name: '' },
  { id: '-1', name: '', tag: '' },
  { id: '0', name: ' a ', tag: ' ' },
  { id: '1', name: 'Acer "Crimson King", red', tag: '"' },
  { id: '2', name: 'two\nlines\r\nand\ra half\r', tag: '\n' },
  // Every character that neither JSON nor Postgres refuses below U+0080.
  {
    id: '3',
    name: Array.from({ length: 0x7f }, (_, i) => String.fromCharCode(i + 1)).join(''),
    tag: '\u0001\u0002\u001f',
  },
  { id: '4', name: '\\.', tag: '\\N' },
  { id: '5', name: '\uFEFFa\u2028b\u2029', tag: 'null' },
  { id: '6', name: '\\', tag: '\\n' },
  { id: '9007199254740993', name: 'Ácer 🌱 a\u0301', tag: '\u{10ffff}' },
  { id: '9223372036854775807', name: '{"id":1}', tag: 'NULL' },
];

const MANY = 20_000;

/** The command, in a shell. */
const CLI = [...NODE, join(ROOT, 'dist/cli.js')].map((word) => `'${word}'`).join(' ');

const HEADER = PLANT_FIELDS.join();

/** The ends of lines of plants that have a name alone. */
const NO_MORE = ','.repeat(OPTIONAL_FIELDS.length);

const resources = useResources();

let service: TestService;
let folder: string;

beforeAll(async () => {
  service = await startService();
});
beforeEach(async () => {
  await service.database.query('TRUNCATE plants');
  folder = await temporaryFolder(resources);
});
afterEach(() => service.proxy.restore());
afterAll(() => service.close());

const environment = () => ({
  DATABASE_URL: service.proxy.url,
  PLANT_STORE_CALLER_DIR: folder,
});
const exportTo = (args: string[], surroundings: Surroundings = {}) =>
  runInProcess(['plants', 'export', ...args], environment(), surroundings);
const start = (args: string[], env = {}) =>
  attempt(resources, ['dist/cli.js', 'plants', 'export', ...args], { ...environment(), ...env });
const load = (file: string) => runInProcess(['plants', 'load', file], environment());
const store = (plants: readonly StoredPlant[]) =>
  service.database.query(
    `INSERT INTO plants (id, name, tag) SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])`,
    [plants.map(({ id }) => id), plants.map(({ name }) => name), plants.map(({ tag }) => tag)],
  );
const storeMany = () =>
  service.database.query(
    `INSERT INTO plants (id, name) SELECT i, repeat('a', 1000) FROM generate_series(1, ${MANY}) AS i`,
  );
const files = async () => (await readdir(folder)).sort();

it.each(['plants.csv', 'plants.ndjson', 'plants.JSONL'])(
  'writes %s, and loading it into an empty database gives the same rows',
  async (file) => {
    await store(LOADED);
    expect(await exportTo([file])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringMatching(/^11 plants exported, 0\.0 MB, in \d+\.\d s\.\n$/),
    });
    expect(await files()).toEqual([file]);
    await service.database.query('TRUNCATE plants');
    expect(await load(file)).toMatchObject({ exitCode: 0 });
    expect(await service.storedPlants()).toEqual(LOADED);
  },
);

it('writes CSV to standard output, and NDJSON with --format', async () => {
  await store([
    { id: '9223372036854775807', name: 'Acer, red' },
    { id: '1', name: 'é', tag: '' },
  ]);
  // Written out: the header and the columns are a promise to the programs that read the file.
  const rest = ','.repeat(PLANT_FIELDS.length - 'id,name,tag'.split(',').length);
  const csv = `${HEADER}\n9223372036854775807,"Acer, red",${rest}\n1,é,""${rest}\n`;
  expect(await exportTo([])).toMatchObject({ exitCode: 0, stdout: csv });
  expect(await exportTo(['-', '--format', 'ndjson'])).toMatchObject({
    exitCode: 0,
    stdout: '{"id":9223372036854775807,"name":"Acer, red"}\n{"id":1,"name":"é","tag":""}\n',
  });
  await exportTo(['plants.txt', '--format', 'csv']);
  expect(await readFile(join(folder, 'plants.txt'), 'utf8')).toBe(csv);
});

it('replaces the file of an earlier export, and writes one without plants that can be loaded', async () => {
  const file = join(folder, 'plants.csv');
  await writeFile(file, 'earlier');
  expect(await exportTo(['plants.csv'])).toMatchObject({
    exitCode: 0,
    stderr: expect.stringMatching(/^0 plants exported/),
  });
  expect(await readFile(file, 'utf8')).toBe(`${HEADER}\n`);
  expect(await files()).toEqual(['plants.csv']);
  expect(await load('plants.csv')).toMatchObject({ exitCode: 0 });
});

it('depends on no setting of the database', async () => {
  await store(LOADED);
  const { stdout } = await exportTo([]);
  const settings = {
    client_encoding: 'LATIN1',
    default_transaction_isolation: "'read committed'",
    quote_all_identifiers: 'on',
    standard_conforming_strings: 'off',
    statement_timeout: '10000',
  };
  for (const [name, value] of Object.entries(settings)) await service.database.set(name, value);
  try {
    expect(await exportTo([])).toMatchObject({ exitCode: 0, stdout });
  } finally {
    for (const name of Object.keys(settings)) await service.database.set(name, 'DEFAULT');
  }
});

const copies = (waitEvent: string, age = '0') =>
  service.database.query(
    `SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND query LIKE 'COPY%' AND wait_event = $1
       AND clock_timestamp() > query_start + $2::interval`,
    [waitEvent, age],
  );

/** Starts an export whose output nobody reads, and waits until the database waits for it. At first, it can wait for moments only. */
async function startUnread(): Promise<Command> {
  await storeMany();
  const command = start([], { DATABASE_URL: service.database.url });
  command.process.stdout.pause();
  await until(async () => (await copies('ClientWrite')).length > 0);
  return command;
}

it('has the plants of one moment, and no more of them in memory than its reader takes', async () => {
  await service.database.set('statement_timeout', '1000');
  const command = await startUnread().finally(() =>
    service.database.set('statement_timeout', 'DEFAULT'),
  );
  // The limit of a role is for requests.
  await until(async () => (await copies('ClientWrite', '1 second')).length === 1);
  await service.post('{"id":-1,"name":"late"}');
  await service.database.query('DELETE FROM plants WHERE id > 1');
  command.process.stdout.resume();
  expect(await command.exit()).toBe(0);
  const lines = command.stdout.split('\n');
  expect(lines).toHaveLength(1 + MANY + 1);
  expect(lines).toContain(`${MANY},${'a'.repeat(1000)}${NO_MORE}`);
  expect(command.stdout).not.toContain('late');
  expect(command.stderr).toMatch(/^20,000 plants exported, 20\.\d MB, in /m);
});

it('ends after a signal although nobody reads what it writes', async () => {
  const command = await startUnread();
  command.process.kill('SIGTERM');
  await once(command.process, 'exit');
  expect(command.process.exitCode).toBe(143);
  expect(command.stderr).toBe('Interrupted. What was written is not complete.\n');
});

it('says that standard output has not all plants when its disk is full', async () => {
  await storeMany();
  expect(await exportTo([], { stdout: '/dev/full' })).toMatchObject({
    exitCode: 1,
    stderr:
      'Standard output could not be written: the disk is full. What was written is not complete.\n',
  });
});

it.each<[string, (path: string) => Promise<unknown>]>([
  [
    'a signal',
    async (path) => {
      const command = start([path]);
      await untilItWaits();
      // npm sends a signal again that the terminal sent to all.
      const repeating = setInterval(() => command.process.kill('SIGINT'), 1);
      resources.defer(() => clearInterval(repeating));
      expect(await command.exit()).toBe(130);
      expect(command.stderr).toBe(`Interrupted. ${path} was not written.\n`);
    },
  ],
  [
    'a failure of the database',
    async (path) => {
      const outcomes = [exportTo([path]), exportTo([])];
      await untilItWaits(outcomes.length);
      service.proxy.cut();
      const reason =
        'Not all plants could be read from the database: Connection terminated unexpectedly.';
      expect(await Promise.all(outcomes)).toMatchObject([
        { exitCode: 1, stderr: `${reason} ${path} was not written.\n` },
        { exitCode: 1, stderr: `${reason} What was written is not complete.\n` },
      ]);
    },
  ],
])('leaves the file of an earlier export as it was after %s', async (_what, fail) => {
  const path = join(folder, 'plants.csv');
  await writeFile(path, 'earlier');
  // The export waits for this lock.
  await service.database.query('BEGIN');
  await service.database.query('LOCK TABLE plants');
  try {
    await fail(path);
  } finally {
    await service.database.query('ROLLBACK');
  }
  expect(await files()).toEqual(['plants.csv']);
  expect(await readFile(path, 'utf8')).toBe('earlier');
});

/** Waits until exports wait for a lock; one of them has begun its file. */
async function untilItWaits(count = 1): Promise<void> {
  await until(async () => {
    // The list of sessions is otherwise that of the first look in a transaction.
    await service.database.query('SELECT pg_stat_clear_snapshot()');
    return (await copies('relation')).length === count;
  });
  expect(await files()).toEqual(['plants.csv', expect.stringMatching(/^plants\.csv\.\d+\.part$/)]);
}

it('leaves no file that is not complete', async () => {
  await storeMany();
  // More than this is an error of the system, as on a disk that is full.
  const limit = "ulimit -f 100; trap '' XFSZ";
  const shell = ['-c', `${limit}; exec ${CLI} plants export plants.csv`];
  const command = attemptProgram(resources, 'sh', shell, environment());
  expect(await command.exit()).toBe(1);
  expect(command.stderr).toMatch(/plants\.csv cannot be written: .+ Name a file in a folder /);
  expect(await files()).toEqual([]);
});

it('shows on a terminal how much it has written', async () => {
  const { stderr } = await exportTo(['plants.csv'], { isTerminal: true });
  expect(stderr).toContain('\u001b[1G0.0 MB');
});

it.each([
  [['plants.txt'], 2, 'The name of the file must end with .csv, .ndjson or .jsonl'],
  [['no/folder.csv'], 1, 'no/folder.csv cannot be written: there is no such file or folder. Name'],
  [['folder.csv'], 1, 'folder.csv cannot be written: it is a folder. Name'],
  [['device.csv'], 1, 'device.csv is no file. For a pipe or a device, write: > '],
])('%j ends with exit code %d and the reason', async (args, exitCode, reason) => {
  await mkdir(join(folder, 'folder.csv'));
  await symlink('/dev/null', join(folder, 'device.csv'));
  const result = await exportTo(args);
  expect(result).toMatchObject({ exitCode, stdout: '' });
  expect(result.stderr).toContain(reason);
  expect(await files()).toEqual(['device.csv', 'folder.csv']);
  expect((await lstat(join(folder, 'device.csv'))).isSymbolicLink()).toBe(true);
});

it('makes no database: a mistyped DATA_DIR is an error, and not an empty backup', async () => {
  const dataDir = join(folder, 'mistyped');
  expect(await runInProcess(['plants', 'export'], { DATA_DIR: dataDir })).toEqual({
    exitCode: 1,
    stdout: '',
    stderr: `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.\n`,
  });
  expect(await files()).toEqual([]);
});

it('reads the embedded database, also beside a service that runs on it, whose log it does not disturb when its reader ends first', async () => {
  const dataDir = await makeDataDir();
  const settings = { DATA_DIR: dataDir };
  resources.defer(() => removeDataDir(dataDir));
  const service = runService(settings);
  resources.defer(() => end(service));
  await urlOf(service);
  const socket = encodeURIComponent(join(dataDir, 'postgres'));
  const rows = `SELECT i, repeat('a', 1000) FROM generate_series(1, ${MANY}) AS i`;
  await queryOnce(
    `postgres://postgres@/postgres?host=${socket}`,
    `INSERT INTO plants (id, name) ${rows}`,
  );
  // The connection is lost: the reader ends before the export, which says nothing about it.
  const shell = ['-c', `${CLI} plants export | head -n 2; echo "\${PIPESTATUS[*]}"`];
  const pipe = runProgram('/bin/bash', shell, settings);
  expect(await pipe.exit()).toBe(0);
  expect(pipe.stdout).toBe(`${HEADER}\n1,${'a'.repeat(1000)}${NO_MORE}\n141 0\n`);
  expect(pipe.stderr).toBe('');
  service.process.kill('SIGTERM');
  expect(await service.exit()).toBe(0);
  expect(service.stdout + service.stderr).not.toContain('The embedded Postgres: ');
  // This one starts and ends the database itself, and its process must end, too.
  const alone = attempt(resources, ['dist/cli.js', 'plants', 'export'], settings);
  expect(await alone.exit()).toBe(0);
  expect(alone.stdout.split('\n')).toHaveLength(1 + MANY + 1);
});
