import { once } from 'node:events';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { postPlant } from '../setup/http/post-plant.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { attempt, attemptProgram } from '../setup/process/attempts.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram } from '../setup/process/command.js';
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

describe('plants export', () => {
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

  it('makes no database: a mistyped DATA_DIR is an error, and not an empty backup', async () => {
    const dataDir = join(folder, 'mistyped');
    expect(await runInProcess(['plants', 'export'], { DATA_DIR: dataDir })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.\n`,
    });
    expect(await readdir(folder)).toEqual([]);
  });

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
  const storeMany = (count = MANY) =>
    service.database.query(
      `INSERT INTO plants (id, name) SELECT i, repeat('a', 1000) FROM generate_series(1, ${count}) AS i`,
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
    const csv = `${PLANT_FIELDS.join()}\n9223372036854775807,"Acer, red",${rest}\n1,é,""${rest}\n`;
    for (const args of [[], ['-'], ['--format', 'csv']]) {
      expect(await exportTo(args)).toMatchObject({ exitCode: 0, stdout: csv });
    }
    expect(await exportTo(['-', '--format', 'ndjson'])).toMatchObject({
      exitCode: 0,
      stdout: '{"id":9223372036854775807,"name":"Acer, red"}\n{"id":1,"name":"é","tag":""}\n',
    });
    await exportTo(['plants.txt', '--format', 'csv']);
    expect(await readFile(join(folder, 'plants.txt'), 'utf8')).toBe(csv);
  });

  it('writes a file without plants that can be loaded', async () => {
    expect(await exportTo(['plants.csv'])).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^0 plants exported/),
    });
    expect(await readFile(join(folder, 'plants.csv'), 'utf8')).toBe(`${HEADER}\n`);
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

  /**
   * Starts an export whose output nobody reads, and waits until the database waits for it. At first, it can wait for moments only.
   *
   * @returns the command, and the process id of its session
   */
  const startUnread = async () => {
    await storeMany();
    const command = start([], { DATABASE_URL: service.database.url });
    command.process.stdout.pause();
    let pid: number | undefined;
    await until(async () => {
      pid = (await copies('ClientWrite'))[0]?.pid;
      return pid !== undefined;
    });
    return { command, pid };
  };
  const copies = (waitEvent: string, age = '0') =>
    service.database.query<{ pid: number }>(
      `SELECT pid FROM pg_stat_activity
       WHERE datname = current_database() AND query LIKE 'COPY%' AND wait_event = $1
         AND clock_timestamp() > query_start + $2::interval`,
      [waitEvent, age],
    );

  it('has the plants of one moment, and no more of them in memory than its reader takes', async () => {
    await service.database.set('statement_timeout', '1000');
    const { command } = await startUnread().finally(() =>
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

  it('ends without a message when the reader of a pipe has ended', async () => {
    await storeMany();
    const pipe = runProgram(
      '/bin/bash',
      ['-c', `${CLI} plants export | head -n 2; echo "\${PIPESTATUS[*]}"`],
      environment(),
    );
    expect(await pipe.exit()).toBe(0);
    expect(pipe.stdout).toMatch(new RegExp(`^${HEADER}\n1,a+${NO_MORE}\n141 0\n$`));
    expect(pipe.stderr).toBe('');
  });

  it('ends after a signal although nobody reads what it writes', async () => {
    const { command } = await startUnread();
    command.process.kill('SIGTERM');
    await once(command.process, 'exit');
    expect(command.process.exitCode).toBe(143);
    expect(command.stderr).toBe('Interrupted. What was written is not complete.\n');
  });

  it('says that standard output has not all plants', async () => {
    await storeMany();
    const full = await exportTo([], { stdout: '/dev/full' });
    expect(full).toMatchObject({
      exitCode: 1,
      stderr:
        'Standard output could not be written: the disk is full. What was written is not complete.\n',
    });
    await service.database.query('TRUNCATE plants');
    const { command, pid } = await startUnread();
    await service.database.query('SELECT pg_terminate_backend($1)', [pid]);
    command.process.stdout.resume();
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toMatch(
      /^Not all plants could be read from the database: .+\. What was written is not complete\.\n$/,
    );
  });

  describe('to a file', () => {
    let before: string;

    /** Makes the file of an earlier export, and a lock for which the next one waits. */
    beforeEach(async () => {
      await store(LOADED);
      await exportTo(['plants.csv']);
      before = await readFile(join(folder, 'plants.csv'), 'utf8');
      await service.database.query('BEGIN');
      await service.database.query('LOCK TABLE plants');
    });
    afterEach(() => service.database.query('ROLLBACK'));

    const untilItWaits = async () => {
      await until(async () => {
        // The list of sessions is otherwise that of the first look in a transaction.
        await service.database.query('SELECT pg_stat_clear_snapshot()');
        return (await copies('relation')).length === 1;
      });
      expect(await files()).toEqual([
        'plants.csv',
        expect.stringMatching(/^plants\.csv\.\d+\.part$/),
      ]);
    };
    const expectUnchanged = async () => {
      expect(await files()).toEqual(['plants.csv']);
      expect(await readFile(join(folder, 'plants.csv'), 'utf8')).toBe(before);
    };

    it.each([
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const)(
      'leaves an earlier one as it was after %s, with exit code %d',
      async (signal, exitCode) => {
        const command = start(['plants.csv']);
        await untilItWaits();
        // npm sends a signal again that the terminal sent to all.
        const repeating = setInterval(() => command.process.kill(signal), 1);
        resources.defer(() => clearInterval(repeating));
        expect(await command.exit()).toBe(exitCode);
        expect(command.stderr).toBe(
          `Interrupted. ${join(folder, 'plants.csv')} was not written.\n`,
        );
        await expectUnchanged();
      },
    );

    it('leaves an earlier one as it was if the database fails', async () => {
      const outcome = exportTo(['plants.csv']);
      await untilItWaits();
      service.proxy.cut();
      expect(await outcome).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `Not all plants could be read from the database: Connection terminated unexpectedly. ${join(folder, 'plants.csv')} was not written.\n`,
      });
      await expectUnchanged();
    });
  });

  it('replaces the file of an earlier export', async () => {
    await writeFile(join(folder, 'plants.csv'), 'earlier');
    expect(await exportTo(['plants.csv'])).toMatchObject({ exitCode: 0 });
    expect(await readFile(join(folder, 'plants.csv'), 'utf8')).toBe(`${HEADER}\n`);
    expect(await files()).toEqual(['plants.csv']);
  });

  it('leaves no file that is not complete', async () => {
    await storeMany();
    // More than this is an error of the system, as on a disk that is full.
    const limit = "ulimit -f 100; trap '' XFSZ";
    const shell = attemptProgram(
      resources,
      'sh',
      ['-c', `${limit}; exec ${CLI} plants export plants.csv`],
      environment(),
    );
    expect(await shell.exit()).toBe(1);
    expect(shell.stderr).toMatch(/plants\.csv cannot be written: .+ Name a file in a folder /);
    expect(await files()).toEqual([]);
  });

  it('shows on a terminal how much it has written', async () => {
    await store(LOADED);
    const { stderr } = await exportTo(['plants.csv'], { isTerminal: true });
    expect(stderr).toContain('\u001b[1G0.0 MB');
    expect(stderr).toMatch(/11 plants exported, 0\.0 MB, in \d+\.\d s\.\n$/);
  });

  it.each([
    [['plants.txt'], 2, 'The name of the file must end with .csv, .ndjson or .jsonl'],
    [['plants'], 2, 'or --format must be csv or ndjson'],
    [['plants.csv', '--format', 'xml'], 2, 'Allowed choices are csv, ndjson'],
    [['a.csv', 'b.csv'], 2, 'too many arguments'],
    [
      ['no/folder.csv'],
      1,
      'no/folder.csv cannot be written: there is no such file or folder. Name',
    ],
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
});

it('reads the embedded database, also beside a service that runs on it, whose log it does not disturb', async () => {
  const dataDir = await makeDataDir();
  const settings = { DATA_DIR: dataDir };
  resources.defer(() => removeDataDir(dataDir));
  const service = runService(settings);
  resources.defer(() => end(service));
  const url = await urlOf(service);
  const token = (await service.waitFor(/Bearer (plantstore_\w+)/))[1]!;
  expect(await runInProcess(['plants', 'export'], settings)).toMatchObject({
    exitCode: 0,
    stdout: `${HEADER}\n`,
  });
  expect((await postPlant(url, token, 1)).status).toBe(200);
  const socket = encodeURIComponent(join(dataDir, 'postgres'));
  const rows = `SELECT i, repeat('a', 1000) FROM generate_series(2, ${MANY}) AS i`;
  await queryOnce(
    `postgres://postgres@/postgres?host=${socket}`,
    `INSERT INTO plants (id, name) ${rows}`,
  );
  // The reader ends before the export, whose connection is then lost.
  const shell = ['-c', `${CLI} plants export | head -n 2`];
  const pipe = runProgram('/bin/bash', shell, settings);
  expect(await pipe.exit()).toBe(0);
  expect(pipe.stdout).toBe(`${HEADER}\n1,a${NO_MORE}\n`);
  service.process.kill('SIGTERM');
  expect(await service.exit()).toBe(0);
  expect(service.stdout + service.stderr).not.toContain('The embedded Postgres: ');
  // This one starts and ends the database itself, and its process must end, too.
  const alone = attempt(resources, ['dist/cli.js', 'plants', 'export'], settings);
  expect(await alone.exit()).toBe(0);
  const lines = alone.stdout.split('\n');
  expect(lines).toHaveLength(1 + MANY + 1);
  expect(lines).toContain(`1,a${NO_MORE}`);
});
