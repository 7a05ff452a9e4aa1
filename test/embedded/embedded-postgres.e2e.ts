import { execFile } from 'node:child_process';
import { existsSync, globSync, lstatSync } from 'node:fs';
import { appendFile, chmod, chown, mkdir, readdir, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { patientConfig } from '../setup/database/patient.js';
import { startEmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { findPostgresPackage } from '../../src/database/embedded/postgres-package.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { joinDatabase, openDatabase, type OpenDatabase } from '../../src/database/open-database.js';
import { useResources } from '../setup/jest/resources.js';
import { end, urlOf } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram, type Command } from '../setup/process/command.js';
import { makeDataDir, postgresPidIn, removeDataDir } from '../setup/service/data-dir.js';
import { postPlant } from '../setup/http/post-plant.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { isRunning } from '../setup/process/processes.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
import { holdTime } from '../setup/time/held-time.js';
import { until } from '../setup/time/until.js';

const exec = promisify(execFile);

const resources = useResources();
let dataDir: string;

beforeEach(async () => {
  dataDir = await makeDataDir();
  resources.defer(() => removeDataDir(dataDir));
});

const configOf = (dir = dataDir, startTimeout = 60_000) =>
  patientConfig({ dataDir: dir, startTimeout });

const silent = () => undefined;

/** Closes it after the test. */
async function closing(opening: Promise<OpenDatabase>): Promise<OpenDatabase> {
  const database = await opening;
  resources.defer(() => database.close());
  return database;
}

/** Opens the database as a service does. */
const open = (dir = dataDir) => closing(openDatabase(configOf(dir), silent));

/** Opens it as a service that does not wait for another one to end. */
const tryToOpen = (dir = dataDir) => openDatabase(configOf(dir, 0), silent);

/** Connects as another program does beside the service. */
async function connect(dir = dataDir): Promise<pg.Client> {
  const client = new pg.Client({
    host: join(dir, 'postgres'),
    user: 'postgres',
    database: 'postgres',
  });
  // The service ends its Postgres, with this connection.
  client.on('error', () => undefined);
  await client.connect();
  resources.defer(() => client.end());
  return client;
}

/** The message for a second service. */
const inUse = async (dir = dataDir) =>
  `${dir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPidIn(dataDir)}). Stop that one, or set DATA_DIR to another folder.`;

const isRoot = process.geteuid!() === 0;

it('a command makes a database only for what it creates, and says so', async () => {
  const token = (...args: string[]) =>
    runInProcess(['token', ...args], { DATA_DIR: dataDir, DATBASE_URL: 'postgres://db/plants' });
  const warning = 'DATBASE_URL is not a setting: did you mean DATABASE_URL?\n';
  for (const words of [['list'], ['revoke', 'a'], ['rotate', 'a']]) {
    expect(await token(...words)).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `${warning}There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.\n`,
    });
  }
  expect(await readdir(dataDir)).toEqual([]);
  const created = await token('create', 'a');
  expect(created.exitCode).toBe(0);
  expect(created.stderr).toContain(`${warning}Made an embedded database in ${dataDir}.\n`);
});

it('the first start makes a database in a folder with any path, also after one that was interrupted', async () => {
  // Too long for a socket, and of characters that programs treat in their own ways.
  const dir = join(dataDir, `a,b\\c'd "e" $f %g`, 'x'.repeat(120));
  const left = join(dir, 'postgres.unfinished');
  await mkdir(dir, { mode: 0o700, recursive: true });
  await mkdir(left);
  await writeFile(join(left, 'PG_VERSION'), '18\n');
  // Perhaps of another user, for whom root started.
  if (isRoot)
    for (const path of [left, join(left, 'PG_VERSION')]) await chown(path, 12_345, 12_345);
  const database = await open(dir);
  expect(existsSync(left)).toBe(false);
  await prepareDatabase(database.config, silent);
  const list = await runInProcess(['token', 'list'], { DATA_DIR: dir });
  expect(list).toMatchObject({ exitCode: 0 });
});

describe('a database that was open before', () => {
  beforeEach(async () => {
    const postgres = join(dataDir, 'postgres');
    await mkdir(postgres, { mode: 0o700 });
    const archive = join(findPostgresPackage(), 'new-cluster.tgz');
    await exec('tar', ['-xzf', archive, '-C', postgres, '--no-same-owner']);
    if (isRoot) await exec('chown', ['-R', '65534', postgres]);
  });

  it('opens although a kill on a full disk left its lock files, its messages were sent to a file, and root restored a copy', async () => {
    const postgres = join(dataDir, 'postgres');
    // Only Linux has flock, beside which these files mean nothing.
    if (process.platform === 'linux') {
      await writeFile(join(postgres, 'postmaster.pid'), '');
      await writeFile(join(postgres, '.s.PGSQL.5432.lock'), `${process.pid}\n`);
    }
    const setting = "logging_collector = on\nlog_destination = 'jsonlog'\n";
    await appendFile(join(postgres, 'postgresql.conf'), setting);
    if (isRoot) await exec('chown', ['-R', 'root', postgres]);
    await open();
    await connect();
  });

  it('is refused while a Postgres that a person has started works on it, whose files stay', async () => {
    const postgres = join(dataDir, 'postgres');
    const script = 'dist/database/embedded/as-ordinary-user.sh';
    const options = ['-D', postgres, '-c', 'listen_addresses=', '-c', 'unix_socket_directories=.'];
    const program = join(findPostgresPackage(), 'bin/postgres');
    const server = runProgram('/bin/sh', [script, program, ...options]);
    resources.defer(async () => {
      server.process.kill('SIGINT');
      await server.exit();
    });
    await server.waitFor(/ready to accept connections/);
    await expect(tryToOpen()).rejects.toThrow(await inUse());
    expect(existsSync(join(postgres, '.s.PGSQL.5432.lock'))).toBe(true);
  });
});

describe('the embedded Postgres of a service', () => {
  let ownDataDir: string;
  let service: Command;

  beforeAll(async () => {
    ownDataDir = await makeDataDir();
    await chmod(ownDataDir, 0o755);
    const command = ['-c', 'umask 000; exec "$0" "$@"', ...NODE, join(ROOT, 'dist/main.js')];
    // Those for clients of Postgres, which must not change anything.
    const variables = {
      PGHOST: '/nowhere',
      PGPORT: '1',
      PGUSER: 'nobody',
      PGDATABASE: 'nothing',
      PGPASSWORD: 'wrong',
      PGSSLMODE: 'verify-full',
      PGOPTIONS: '-c default_transaction_read_only=on',
      PGCLIENT_ENCODING: 'LATIN1',
      PGREPLICATION: 'true',
      PGBINARY: 'true',
      PGDATA: '/nowhere',
    };
    const env = { DATA_DIR: ownDataDir, PORT: '0', ...METRICS_SETTING, ...variables };
    service = runProgram('/bin/sh', command, env);
    await urlOf(service);
  });
  afterAll(async () => {
    await end(service);
    await removeDataDir(ownDataDir);
  });

  const post = async (id: number, name: string) => {
    const [, token] = await service.waitFor(/Token +(\S+)/);
    return (await postPlant(await urlOf(service), token!, id, name)).status;
  };

  it('has a folder that is closed to other users with all in it, whatever the mode of the folder and the umask', () => {
    // Postgres renames files while the folder is read.
    const modeOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    const names = globSync('**', { cwd: ownDataDir });
    const paths = [ownDataDir, ...names.map((path) => join(ownDataDir, path))];
    expect(paths.length).toBeGreaterThan(900);
    expect(paths.filter((path) => (modeOf(path) & 0o077) !== 0)).toEqual([]);
  });

  it('is durable, and is reached through its folder only: it listens on no address', async () => {
    const { rows } = await (
      await connect(ownDataDir)
    ).query(
      `SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
         current_setting('synchronous_commit') AS synchronous_commit, current_setting('data_checksums') AS data_checksums,
         current_setting('listen_addresses') AS listen_addresses`,
    );
    expect(rows).toEqual([
      {
        fsync: 'on',
        full_page_writes: 'on',
        synchronous_commit: 'on',
        data_checksums: 'on',
        listen_addresses: '',
      },
    ]);
  });

  it('reports neither the statement of a session that it ends, which may contain data of users, nor an export whose output ends first', async () => {
    const observer = await connect(ownDataDir);
    // More than is in transit between Postgres and the export.
    const rows = "SELECT -i, repeat('a', 10000) FROM generate_series(1, 2000) AS i";
    await observer.query(`INSERT INTO plants (id, name) ${rows}`);
    const settings = { DATA_DIR: ownDataDir };
    const exported = await runInProcess(['plants', 'export'], settings, { stdout: '/dev/full' });
    expect(exported).toMatchObject({ exitCode: 1 });
    // Waits until the session of the export has ended.
    await observer.query('TRUNCATE plants');
    // The message about the second one shows that all lines before it have arrived.
    for (const name of ['Rosa canina', 'Rosa gallica']) {
      const client = await connect(ownDataDir);
      const ended = expect(client.query(`SELECT pg_sleep(600), '${name}'`)).rejects.toThrow();
      const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
      await until(async () => (await observer.query(end)).rowCount === 1);
      await ended;
    }
    await service.waitFor(/(terminating connection due to administrator command[^]*){2}/);
    expect(service.stdout + service.stderr).not.toContain('Rosa');
    const messages = service.stdout.match(/The embedded Postgres: [^"]*/g)!;
    expect(messages.filter((it) => !it.includes('terminating connection'))).toEqual([]);
  });

  it('does not get the signal of Ctrl+C in the terminal of its service', async () => {
    const groupOf = async (pid: number) =>
      Number((await exec('ps', ['-o', 'pgid=', '-p', String(pid)])).stdout);
    const group = await groupOf(await postgresPidIn(ownDataDir));
    expect(group).not.toBe(await groupOf(service.process.pid!));
  });

  it('serves any number of other programs, whatever they do in their sessions', async () => {
    const connecting = Array.from({ length: 20 }, () => connect(ownDataDir));
    const clients = await Promise.all(connecting);
    for (const client of clients) {
      await client.query('SET search_path = pg_temp');
      await client.query("SET default_transaction_read_only = on; PREPARE ids AS SELECT 'x'");
      await client.query('BEGIN');
    }
    expect(await post(1, 'ä')).toBe(200);
    const { rows } = await clients[0]!.query('SELECT name FROM public.plants');
    expect(rows).toEqual([{ name: 'ä' }]);
  });

  it('ends the service when it is killed, and the next one has its plants', async () => {
    expect(await post(2, 'b')).toBe(200);
    process.kill(await postgresPidIn(ownDataDir), 'SIGKILL');
    expect(await service.exit()).toBe(1);
    expect(service.stdout).toMatch(/The Plant Store ends: The embedded Postgres ended/);
    await open(ownDataDir);
    const { rows } = await (await connect(ownDataDir)).query('SELECT id FROM plants WHERE id = 2');
    expect(rows).toEqual([{ id: '2' }]);
  });
});

it('a Postgres whose socket is removed, as by a cleaner of temporary files, is reported', async () => {
  const CHECK_INTERVAL_MS = 5000;
  resources.defer(endTimersAtOnce(CHECK_INTERVAL_MS));
  const database = await open();
  await rm(join(dataDir, 'postgres/.s.PGSQL.5432'));
  expect(await database.failed).toMatch(/^The socket of the embedded Postgres was removed: /);
});

it('a Postgres that does not react any more ends with its service all the same', async () => {
  const database = await open();
  const pid = await postgresPidIn(dataDir);
  process.kill(pid, 'SIGSTOP');
  await database.close();
  expect(isRunning(pid)).toBe(false);
});

describe('a folder that another process has open', () => {
  it('is shared with commands, and refused to a second service, also under another name, as soon as none that was killed can be left', async () => {
    await open();
    const commands = ['a', 'b'].map((name) =>
      runInProcess(['token', 'create', name], { DATA_DIR: dataDir }),
    );
    for (const command of commands) expect(await command).toMatchObject({ exitCode: 0 });
    const otherDir = join(dataDir, 'other');
    await mkdir(otherDir);
    await symlink(join(dataDir, 'postgres'), join(otherDir, 'postgres'));
    await expect(tryToOpen(otherDir)).rejects.toThrow(await inUse(otherDir));
    const time = holdTime();
    resources.defer(() => time.release());
    const second = openDatabase(configOf(), silent).catch((error: unknown) => error);
    await time.pass(5000);
    expect(await second).toMatchObject({ message: await inUse() });
    // Still open: no command has closed it.
    time.release();
    await connect();
  });

  it('is waited for by a service and a command while a command has it', async () => {
    const command = await closing(joinDatabase(configOf()));
    const service = open();
    // Both have tried once, in this order, when the second one gives up.
    await expect(tryToOpen()).rejects.toThrow('is in use');
    const create = runInProcess(['token', 'create', 'a'], { DATA_DIR: dataDir });
    await command.close();
    await service;
    expect(await create).toMatchObject({ exitCode: 0 });
  });
});

it('a start says why Postgres ended, even if its messages arrive after its exit code', async () => {
  // A program in the place of Postgres, whose child still writes when the program has ended.
  const folder = join(dataDir, 'programs');
  await mkdir(join(dataDir, 'postgres'));
  await writeFile(join(dataDir, 'postgres/PG_VERSION'), '18\n');
  await mkdir(join(folder, 'bin'), { recursive: true });
  const text = "#!/bin/sh\n(sleep 0.2; echo 'FATAL:  the moon is full' >&2) &\nexit 1\n";
  await writeFile(join(folder, 'bin/postgres'), text, { mode: 0o755 });
  const starting = startEmbeddedPostgres(folder, configOf(), 5432, silent);
  await expect(starting).rejects.toThrow('the moon is full');
});
