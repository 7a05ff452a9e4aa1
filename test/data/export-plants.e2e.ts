import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { attempt } from '../setup/process/attempts.js';
import { canMountDisk, mountSmallDisk } from '../setup/process/disk.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import type { StoredPlant } from '../setup/database/stored-plants.js';
import { OPTIONAL_FIELDS } from '../setup/model/plant.js';
import type { Command } from '../setup/process/command.js';
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

/** With names so long that they are more than all buffers between the database and a reader hold. */
const MANY = 2000;
const LONG_NAME = 'a'.repeat(10_000);

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
    `INSERT INTO plants (id, name) SELECT i, repeat('a', ${LONG_NAME.length}) FROM generate_series(1, ${MANY}) AS i`,
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
  // Not through the proxy, which reads on when its client does not.
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
  expect(lines).toContain(`${MANY},${LONG_NAME}${NO_MORE}`);
  expect(lines).not.toContain(`-1,late${NO_MORE}`);
  expect(command.stderr).toMatch(/^2,000 plants exported, 20\.\d MB, in /m);
});

it('ends after a signal although nobody reads what it writes', async () => {
  const command = await startUnread();
  command.process.kill('SIGTERM');
  await once(command.process, 'exit');
  expect(command.process.exitCode).toBe(143);
  expect(command.stderr).toBe('Interrupted. What was written is not complete.\n');
});

it('ends without a message when its reader ends first', async () => {
  const command = await startUnread();
  command.process.stdout.destroy();
  expect(await command.exit()).toBe(141);
  expect(command.stderr).toBe('');
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

((await canMountDisk()) ? it : it.skip)(
  'leaves no file that is not complete, as on a disk that is full',
  async () => {
    await storeMany();
    const disk = (await mountSmallDisk('1m'))!;
    resources.defer(() => disk.close());
    const path = join(disk.folder, 'plants.csv');
    expect(await exportTo([path])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(
        `${path} cannot be written: the disk is full. Name a file in a folder `,
      ),
    });
    expect(await readdir(disk.folder)).toEqual([]);
  },
);

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
  // Nor does it say so of a folder that it cannot read.
  const unreadable = await runInProcess(['plants', 'export'], { DATA_DIR: '/dev/null/data' });
  expect(unreadable.stderr).toContain('/dev/null/data cannot be used: a file in its path is not');
});
