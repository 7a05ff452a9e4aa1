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
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { NODE, ROOT, runProgram, type Command } from '../setup/process/command.js';
import { makeDataDir, postgresPidIn, removeDataDir } from '../setup/service/data-dir.js';
import { postPlant } from '../setup/http/post-plant.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { usePath } from '../setup/process/path.js';
import { isRunning } from '../setup/process/processes.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
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

/** Only Linux has flock, beside which postmaster.pid is not needed. */
const itOnLinux = process.platform === 'linux' ? it : it.skip;

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

it.each([
  ['too long for a socket', () => join('a', 'x'.repeat(120))],
  ['of characters that programs treat in their own ways', () => `a,b\\c'd "e" $f %g`],
])('the folder may have a path %s', async (_kind, path) => {
  const dir = join(dataDir, path());
  const database = await open(dir);
  await prepareDatabase(database.config, silent);
  const list = await runInProcess(['token', 'list'], { DATA_DIR: dir });
  expect(list).toMatchObject({ exitCode: 0 });
});

it('a first start that was interrupted leaves nothing that the next one takes for a database', async () => {
  const left = join(dataDir, 'postgres.unfinished');
  await mkdir(left);
  await writeFile(join(left, 'PG_VERSION'), '18\n');
  // Perhaps of another user, for whom root started.
  if (isRoot)
    for (const path of [left, join(left, 'PG_VERSION')]) await chown(path, 12_345, 12_345);
  await open();
  expect(existsSync(left)).toBe(false);
});

describe('a database that was open before', () => {
  beforeEach(async () => {
    const postgres = join(dataDir, 'postgres');
    await mkdir(postgres, { mode: 0o700 });
    const archive = join(findPostgresPackage(), 'new-cluster.tgz');
    await exec('tar', ['-xzf', archive, '-C', postgres, '--no-same-owner']);
    if (isRoot) await exec('chown', ['-R', '65534', postgres]);
  });

  itOnLinux.each([
    ['a killed container left the number of a process that is another program by now', process.pid],
    ['a full disk left nothing of that number', ''],
  ])('opens although %s, and a kill the lock of a socket', async (_what, pid) => {
    const postgres = join(dataDir, 'postgres');
    await writeFile(join(postgres, 'postmaster.pid'), `${pid}\n${postgres}\n`);
    await writeFile(join(postgres, '.s.PGSQL.5432.lock'), `${process.pid}\n`);
    await open();
    await connect();
  });

  it('opens although its messages were sent to a file, and root restored a copy', async () => {
    const postgres = join(dataDir, 'postgres');
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

  it('reports no statement of a session that it ends: the text may contain data of users', async () => {
    const observer = await connect(ownDataDir);
    // The message about the second one shows that all lines about the first one have arrived.
    for (const name of ['Rosa canina', 'Rosa gallica']) {
      const client = await connect(ownDataDir);
      const ended = expect(client.query(`SELECT pg_sleep(600), '${name}'`)).rejects.toThrow();
      const end = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'PgSleep'`;
      await until(async () => (await observer.query(end)).rowCount === 1);
      await ended;
    }
    await service.waitFor(/(terminating connection due to administrator command[^]*){2}/);
    expect(service.stdout + service.stderr).not.toContain('Rosa');
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

it('a start that is killed when Postgres starts does not prevent the next one, even if root may not send signals to other users', async () => {
  const command = [...NODE, join(ROOT, 'dist/main.js')];
  if (isRoot) command.unshift('setpriv', '--bounding-set=-kill');
  const [program, ...args] = command;
  const killed = runProgram(program!, args, { DATA_DIR: dataDir, PORT: '0' });
  resources.defer(() => end(killed));
  await until(() => existsSync(join(dataDir, 'postgres/postmaster.pid')));
  killed.process.kill('SIGKILL');
  await killed.exit();
  await open();
});

itOnLinux(
  'a start that waits for the lock of a folder does not make a second database in that of another start',
  async () => {
    const programs = join(dataDir, 'programs');
    await mkdir(programs);
    const called = join(programs, 'called');
    const ready = join(dataDir, 'postgres/postmaster.pid');
    const text = `#!/bin/sh\n: >${called}\nuntil [ -e ${ready} ] || [ ! -e ${called} ]; do sleep 0.1; done\nPATH=\${PATH#*:} exec flock "$@"\n`;
    await writeFile(join(programs, 'flock'), text, { mode: 0o755 });
    const restorePath = usePath(resources, `${programs}:${process.env['PATH']}`);
    const late = tryToOpen().catch((error: unknown) => error);
    await until(() => existsSync(called));
    restorePath();
    await open();
    expect(await late).toMatchObject({ message: await inUse() });
    expect(existsSync(join(dataDir, 'postgres/postgres.unfinished'))).toBe(false);
  },
);

describe('a folder that another process has open', () => {
  it('is refused to a second service, also under another name, and shared with commands', async () => {
    await open();
    const otherDir = join(dataDir, 'other');
    await mkdir(otherDir);
    await symlink(join(dataDir, 'postgres'), join(otherDir, 'postgres'));
    const commands = ['a', 'b'].map((name) =>
      runInProcess(['token', 'create', name], { DATA_DIR: dataDir }),
    );
    const second = openDatabase(configOf(), silent).catch((error: unknown) => error);
    await expect(tryToOpen(otherDir)).rejects.toThrow(await inUse(otherDir));
    expect(await second).toMatchObject({ message: await inUse() });
    for (const command of commands) expect(await command).toMatchObject({ exitCode: 0 });
    // Still open: no command has closed it.
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

  it('is given up by a service that is stopped while it waits', async () => {
    const command = await closing(joinDatabase(configOf()));
    const service = runService({ DATA_DIR: dataDir });
    resources.defer(() => end(service));
    await service.waitFor(/Opening the embedded Postgres/);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
    expect(service.stdout).toContain('The Plant Store has stopped.');
    await command.close();
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
