import { execFile } from 'node:child_process';
import { existsSync, globSync, lstatSync } from 'node:fs';
import { appendFile, chmod, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
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
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { childrenOf, isRunning, parentOf, sendSignal } from '../setup/process/processes.js';
import { until } from '../setup/time/until.js';

const MAIN = 'dist/main.js';

const resources = useResources();
let dataDir: string;

beforeEach(async () => {
  dataDir = await makeDataDir();
  resources.defer(() => removeDataDir(dataDir));
});

const start = (env: Record<string, string> = {}): Command => {
  const service = runService({ DATA_DIR: dataDir, ...env });
  resources.defer(() => end(service));
  return service;
};

const configOf = (startTimeout = 60_000) => patientConfig({ dataDir, startTimeout });

const silent = () => undefined;

async function open(opening: Promise<OpenDatabase>): Promise<OpenDatabase> {
  const database = await opening;
  resources.defer(() => database.close());
  return database;
}

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

/** The process of Postgres on the data folder. */
const postgresPid = (dir = dataDir) => postgresPidIn(dir);

const tokenOf = async (service: Command) => (await service.waitFor(/Token +(\S+)/))[1]!;

const post = async (service: Command, id: number) =>
  postPlant(await urlOf(service), await tokenOf(service), id);

const expectStored = async (service: Command, id: number) =>
  expect(await isStored(await urlOf(service), await tokenOf(service), id)).toBe(true);

/** Only Linux lists the children of a process, has containers, and has flock, beside which postmaster.pid is not needed. */
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
  expect((await token('list')).stderr).toBe(warning);
});

describe('the folder', () => {
  it('may have a path that is too long for a socket', async () => {
    const longDir = join(dataDir, 'a', 'x'.repeat(120));
    const temporary = join(dataDir, 'tmp');
    await mkdir(temporary);
    const env = { DATA_DIR: longDir, TMPDIR: temporary };
    const service = start(env);
    expect((await post(service, 1)).status).toBe(200);
    const second = openDatabase({ ...configOf(), dataDir: longDir }, silent);
    await expect(second).rejects.toThrow(`${longDir} is in use by another Plant Store`);
    expect(await runInProcess(['token', 'list'], env)).toMatchObject({ exitCode: 0 });
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
    expect(await readdir(temporary)).toEqual([]);
  });

  it('is not taken for a database after a first start that was interrupted', async () => {
    const left = join(dataDir, 'postgres.unfinished');
    await mkdir(left);
    await writeFile(join(left, 'PG_VERSION'), '18\n');
    await open(openDatabase(configOf(), silent));
    expect(existsSync(left)).toBe(false);
    await connect();
  });
});

describe('a folder that was open before', () => {
  let usedDir: string;
  let pidFile: string;

  beforeAll(async () => {
    usedDir = await makeDataDir();
    const first = await openDatabase({ ...configOf(), dataDir: usedDir }, silent);
    try {
      pidFile = await readFile(join(usedDir, 'postgres/postmaster.pid'), 'utf8');
    } finally {
      await first.close();
    }
  });
  afterAll(() => removeDataDir(usedDir));

  const changeAndOpen = async (change: (postgres: string) => Promise<unknown>) => {
    await promisify(execFile)('cp', ['-a', join(usedDir, 'postgres'), dataDir]);
    await change(join(dataDir, 'postgres'));
    await open(openDatabase(configOf(), silent));
    await connect();
  };

  itOnLinux(
    'opens although a killed container left the number of a process that is another program by now',
    () =>
      changeAndOpen((postgres) =>
        writeFile(join(postgres, 'postmaster.pid'), pidFile.replace(/^\d+/, String(process.pid))),
      ),
  );

  itOnLinux.each(['', '0\n', 'garbage\n'])(
    'opens although a full disk left %j in postmaster.pid, and a kill the lock of a socket',
    (text) =>
      changeAndOpen(async (postgres) => {
        await writeFile(join(postgres, 'postmaster.pid'), text);
        await writeFile(join(postgres, '.s.PGSQL.5432.lock'), `${process.pid}\n`);
      }),
  );

  it('opens although its messages were sent to a file', () =>
    changeAndOpen((postgres) =>
      appendFile(
        join(postgres, 'postgresql.conf'),
        "logging_collector = on\nlog_destination = 'jsonlog'\n",
      ),
    ));

  // Only root runs Postgres as another user.
  (process.getuid!() === 0 ? it : it.skip)('may be a copy that root restored', () =>
    changeAndOpen((postgres) => promisify(execFile)('chown', ['-R', 'root', postgres])),
  );
});

describe('the embedded Postgres of a service', () => {
  let ownDataDir: string;
  let service: Command;

  beforeAll(async () => {
    ownDataDir = await makeDataDir();
    await chmod(ownDataDir, 0o755);
    const command = ['-c', 'umask 000; exec "$0" "$@"', ...NODE, join(ROOT, MAIN)];
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

  it('has a folder that is closed to other users with all in it, whatever the mode of the folder and the umask', () => {
    // Postgres renames files while the folder is read.
    const modeOf = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.mode ?? 0;
    const names = globSync('**', { cwd: ownDataDir });
    const paths = [ownDataDir, ...names.map((path) => join(ownDataDir, path))];
    expect(paths.length).toBeGreaterThan(900);
    expect(paths.filter((path) => (modeOf(path) & 0o077) !== 0)).toEqual([]);
  });

  it('is durable', async () => {
    const client = await connect(ownDataDir);
    for (const name of ['fsync', 'full_page_writes', 'synchronous_commit', 'data_checksums']) {
      const { rows } = await client.query<Record<string, string>>(`SHOW ${name}`);
      expect(rows).toEqual([{ [name]: 'on' }]);
    }
  });

  it('is reached through its folder only: it listens on no address', async () => {
    const { rows } = await (await connect(ownDataDir)).query('SHOW listen_addresses');
    expect(rows).toEqual([{ listen_addresses: '' }]);
  });

  it('is not changed by the variables for clients of Postgres', async () => {
    const response = await postPlant(await urlOf(service), await tokenOf(service), 1, 'ä');
    expect(response.status).toBe(200);
    const { rows } = await (await connect(ownDataDir)).query('SELECT name FROM plants');
    expect(rows).toEqual([{ name: 'ä' }]);
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
    const pid = String(await postgresPid(ownDataDir));
    const { stdout } = await promisify(execFile)('ps', ['-o', 'pgid=', '-p', pid]);
    const own = await promisify(execFile)('ps', ['-o', 'pgid=', '-p', String(service.process.pid)]);
    expect(Number(stdout)).not.toBe(Number(own.stdout));
  });

  it('serves any number of other programs, whatever they do in their sessions', async () => {
    const connecting = Array.from({ length: 50 }, () => connect(ownDataDir));
    const clients = await Promise.all(connecting);
    for (const client of clients) {
      await client.query('SET search_path = pg_temp');
      await client.query("SET default_transaction_read_only = on; PREPARE ids AS SELECT 'x'");
      await client.query('BEGIN');
    }
    expect((await post(service, 2)).status).toBe(200);
    const { rows } = await clients[0]!.query('SELECT id FROM public.plants WHERE id = 2');
    expect(rows).toEqual([{ id: '2' }]);
  });

  it('ends with its service even if it does not react any more, and the next one has its plants', async () => {
    expect((await post(service, 6)).status).toBe(200);
    const pid = await postgresPid(ownDataDir);
    process.kill(pid, 'SIGSTOP');
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
    expect(isRunning(pid)).toBe(false);
    await open(openDatabase({ ...configOf(), dataDir: ownDataDir }, silent));
    const client = await connect(ownDataDir);
    const { rows } = await client.query('SELECT id FROM plants WHERE id = 6');
    expect(rows).toEqual([{ id: '6' }]);
  });
});

itOnLinux(
  'ends with its service although one of its processes does not react any more',
  async () => {
    const database = await open(openDatabase(configOf(), silent));
    const [child] = await childrenOf(await postgresPid());
    process.kill(child!, 'SIGSTOP');
    resources.defer(() => sendSignal(child!, 'SIGKILL'));
    const pid = await postgresPid();
    await database.close();
    expect(isRunning(pid)).toBe(false);
  },
);

it.each([
  ['Postgres is killed', (pid: number) => process.kill(pid, 'SIGKILL'), /Postgres ended/],
  [
    'the socket is removed, as by a cleaner of temporary files',
    () => rm(join(dataDir, 'postgres/.s.PGSQL.5432')),
    /socket of the embedded Postgres was removed/,
  ],
])(
  'when %s, the service says so and ends, and the next one has its plants',
  async (_what, fail, message) => {
    const service = start();
    expect((await post(service, 1)).status).toBe(200);
    await fail(await postgresPid());
    expect(await service.exit()).toBe(1);
    expect(service.stdout).toMatch(message);
    const next = start();
    await expectStored(next, 1);
  },
);

it.each(['a,b', 'a\\b', 'a\'b "c" $d %e'])('a folder may have any name: %s', async (name) => {
  const database = await open(
    openDatabase({ ...configOf(), dataDir: join(dataDir, name) }, silent),
  );
  await prepareDatabase(database.config, () => undefined);
});

/** Kills the shell that would end Postgres. @returns the process of Postgres */
async function killWatcher(): Promise<number> {
  const pid = await postgresPid();
  const shell = await parentOf(pid);
  const watchers = (await childrenOf(shell)).filter((child) => child !== pid);
  expect(watchers).toHaveLength(1);
  process.kill(watchers[0]!, 'SIGKILL');
  return pid;
}

itOnLinux(
  'if it outlives a service that was killed, the next start says how to end it',
  async () => {
    const service = start();
    await urlOf(service);
    const pid = await killWatcher();
    service.process.kill('SIGKILL');
    await service.exit();
    await expect(openDatabase(configOf(0), silent)).rejects.toThrow(
      `${dataDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${pid}).`,
    );
    process.kill(pid, 'SIGINT');
    await open(openDatabase(configOf(), silent));
  },
);

it.each([
  ['has begun', (service: Command) => service.waitFor(/Opening the embedded Postgres/)],
  ['starts Postgres', () => until(() => existsSync(join(dataDir, 'postgres/postmaster.pid')))],
])('starts after a start that was killed when it %s', async (_when, event) => {
  const killed = start();
  await event(killed);
  killed.process.kill('SIGKILL');
  await killed.exit();
  await open(openDatabase(configOf(), silent));
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
    const late = start({ PATH: `${programs}:${process.env['PATH']}` });
    await until(() => existsSync(called));
    await open(openDatabase(configOf(), silent));
    expect(await late.exit()).toBe(1);
    expect(late.stderr).toContain(
      `${dataDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPid()})`,
    );
    expect(existsSync(join(dataDir, 'postgres/postgres.unfinished'))).toBe(false);
  },
);

it('a Postgres that a person has started in the folder is named, and keeps its files', async () => {
  await (await openDatabase(configOf(), silent)).close();
  const cluster = join(dataDir, 'postgres');
  const postgres = join(findPostgresPackage(), 'bin/postgres');
  const script = 'dist/database/embedded/as-ordinary-user.sh';
  const options = ['-D', cluster, '-c', 'listen_addresses=', '-c', 'unix_socket_directories=.'];
  const server = runProgram('/bin/sh', [script, postgres, ...options]);
  resources.defer(async () => {
    server.process.kill('SIGINT');
    await server.exit();
  });
  await server.waitFor(/ready to accept connections/);
  await expect(openDatabase(configOf(), silent)).rejects.toThrow(
    `${dataDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPid()})`,
  );
  expect(existsSync(join(cluster, '.s.PGSQL.5432.lock'))).toBe(true);
});

(process.geteuid!() === 0 ? it : it.skip)(
  'ends with the service of a root that may not send signals to other users',
  async () => {
    const command = ['--bounding-set=-kill', ...NODE, join(ROOT, MAIN)];
    const service = runProgram('setpriv', command, { DATA_DIR: dataDir, PORT: '0' });
    resources.defer(() => end(service));
    await urlOf(service);
    const pid = await postgresPid();
    service.process.kill('SIGKILL');
    await service.exit();
    await until(() => !isRunning(pid));
  },
);

describe('a folder that another process has open', () => {
  it('is given up by a service that is stopped while it waits', async () => {
    const command = await open(joinDatabase(configOf()));
    const service = start();
    await service.waitFor(/Opening the embedded Postgres/);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
    expect(service.stdout).toContain('The Plant Store has stopped.');
    await command.close();
  });

  it('is opened by one command after the other when no service runs', async () => {
    const names = ['a', 'b', 'c'];
    const create = (name: string) => runInProcess(['token', 'create', name], { DATA_DIR: dataDir });
    const outcomes = await Promise.all(names.map(create));
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
  });

  it('is opened by one of several services that start at once, and used by a command beside it', async () => {
    const services = Array.from({ length: 3 }, () => open(openDatabase(configOf(), silent)));
    const command = runInProcess(['token', 'create', 'a'], { DATA_DIR: dataDir });
    const outcomes = await Promise.allSettled(services);
    const { exitCode } = await command;
    const refused = outcomes.filter(({ status }) => status === 'rejected');
    const inUse = `${dataDir} is in use by another Plant Store (its Postgres, which ends with it, is the process ${await postgresPid()})`;
    const reason = expect.objectContaining({ message: expect.stringContaining(inUse) }) as unknown;
    expect(refused).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
    ]);
    expect(exitCode).toBe(0);
  });
});

/** Makes a program that takes the place of Postgres. */
async function makeProgram(text: string): Promise<string> {
  const folder = join(dataDir, 'programs');
  await mkdir(join(dataDir, 'postgres'));
  await writeFile(join(dataDir, 'postgres/PG_VERSION'), '18\n');
  await mkdir(join(folder, 'bin'), { recursive: true });
  await writeFile(join(folder, 'bin/postgres'), `#!/bin/sh\n${text}`, { mode: 0o755 });
  return folder;
}

it('a start says why Postgres ended, even if its messages arrive after its exit code', async () => {
  // Its child still writes when the program has ended.
  const folder = await makeProgram("(sleep 0.2; echo 'FATAL:  the moon is full' >&2) &\nexit 1\n");
  const starting = startEmbeddedPostgres(folder, configOf(), 5432, silent);
  await expect(starting).rejects.toThrow('the moon is full');
});
