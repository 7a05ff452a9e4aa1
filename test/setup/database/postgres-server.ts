import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  appendFile,
  chown,
  cp,
  mkdtemp,
  readFile,
  readdir,
  readlink,
  realpath,
  rm,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { makeHostileIfUsed } from './hostile-settings.js';
import { queryOnce } from './query-once.js';
import { findFreePorts } from '../process/ports.js';
import { childrenOf, isRunning, sendSignal } from '../process/processes.js';
import { ROOT } from '../process/command.js';
import { findPostgresPackage } from '../../../src/database/embedded/postgres-package.js';
import { until, within } from '../time/until.js';

const exec = promisify(execFile);

/** Root runs Postgres as this user. */
const NOBODY = 65_534;
const AS_ORDINARY_USER = join(ROOT, 'src/database/embedded/as-ordinary-user.sh');

/** A Postgres server that a test may kill, freeze and misconfigure. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  /** The folder of its database cluster. */
  readonly data: string;
  readonly logFile: string;
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  /** Runs SQL in another database of the server, which works even if the first one is misconfigured. */
  administer(sql: string): Promise<void>;
  /** Kills all processes at once, as a crash of the machine does. */
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Stops all processes; connections stay open, and the port still accepts new ones. */
  freeze(): Promise<void>;
  thaw(): Promise<void>;
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Settings of postgresql.conf that differ from the defaults. */
  readonly settings?: Readonly<Record<string, string>>;
  /** The server to follow as a standby; without it, the server has an empty database. */
  readonly primary?: PostgresServer;
  /** The folder below which all files are. */
  readonly parent?: string;
  /** The folder of `initdb`, `pg_ctl` and `postgres`; by default, those of the embedded Postgres. */
  readonly programs?: string;
}

/**
 * Starts a server with the default settings: the commits that it acknowledged survive a crash.
 *
 * @throws Error when the server does not start
 */
export async function startPostgresServer({
  settings = {},
  primary,
  parent = tmpdir(),
  programs,
}: ServerOptions = {}): Promise<PostgresServer> {
  const bin = programs ?? join(findPostgresPackage(), 'bin');
  const dir = await mkdtemp(join(parent, 'plant-store-server-'));
  const isRoot = process.geteuid!() === 0;
  // A server of Citus connects to others, and looks for its certificate in the home folder, which must not be that of root.
  const env = { ...process.env, HOME: dir };
  const run = (...command: string[]) =>
    exec('/bin/sh', [AS_ORDINARY_USER, ...command], { cwd: '/', env });
  const data = join(dir, 'data');
  const logFile = join(dir, 'log');
  const [port] = (await findFreePorts(1)) as [number];

  const start = async () => {
    const options = [`-p ${port} -k ${dir}`];
    for (const [name, value] of Object.entries({ listen_addresses: '127.0.0.1', ...settings })) {
      options.push(`-c ${name}=${value}`);
    }
    const files = ['-D', data, '-l', logFile];
    await run(join(bin, 'pg_ctl'), ...files, '-w', '-o', options.join(' '), 'start');
  };
  const close = async () => {
    await run(join(bin, 'pg_ctl'), '-D', data, '-m', 'immediate', 'stop').catch(() => undefined);
    await rm(dir, { recursive: true });
  };
  const url = `postgres://plants@127.0.0.1:${port}/plants_test`;
  const administer = async (sql: string) => {
    await queryOnce(`postgres://plants@127.0.0.1:${port}/postgres`, sql);
  };

  try {
    if (isRoot) await chown(dir, NOBODY, NOBODY);
    if (primary === undefined) {
      await run(join(bin, 'initdb'), '-D', data, '-U', 'plants', '-A', 'trust', '-E', 'UTF8');
      await start();
      await administer('CREATE DATABASE plants_test');
      await makeHostileIfUsed((sql) => queryOnce(url, sql), 'ROLE plants IN DATABASE plants_test');
    } else {
      await copyFiles(primary, data);
      if (isRoot) await exec('chown', ['-R', `${NOBODY}:${NOBODY}`, data]);
      await start();
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url,
    port,
    data,
    logFile,
    query: (sql, parameters) => queryOnce(url, sql, parameters),
    administer,
    ...disturb(data),
    start,
    close,
  };
}

/**
 * The ways to disturb all processes of a server at once, with the files of its cluster in `data`. One that has ended may be killed,
 * but not frozen.
 */
export function disturb(data: string): Pick<PostgresServer, 'kill' | 'freeze' | 'thaw'> {
  const signalAll = async (signal: NodeJS.Signals) => {
    const postmaster = await postmasterOf(data);
    if (postmaster === undefined) return [];
    // A postmaster that still runs would start processes that are missing in the list.
    sendSignal(postmaster, 'SIGSTOP');
    const children = await childrenOf(postmaster);
    for (const pid of [...children, postmaster]) sendSignal(pid, signal);
    return [...children, postmaster];
  };
  return {
    async kill() {
      const pids = await signalAll('SIGKILL');
      // Postgres does not start again before.
      await within(
        'The processes of the killed Postgres are gone.',
        until(() => !pids.some(isRunning)),
      );
    },
    async freeze() {
      const pids = await signalAll('SIGSTOP');
      if (pids.length === 0) throw new Error(`No Postgres runs in ${data}.`);
    },
    async thaw() {
      await signalAll('SIGCONT');
    },
  };
}

/** @returns undefined if no server runs on these files */
async function postmasterOf(data: string): Promise<number | undefined> {
  let file: string;
  try {
    file = await readFile(join(data, 'postmaster.pid'), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  const postmaster = Number(file.split('\n')[0]);
  // The file outlives a killed server, and another process may have its number by now. Postgres works in its folder.
  const folder = await readlink(`/proc/${postmaster}/cwd`).catch(() => undefined);
  const isOther = folder !== undefined && folder !== (await realpath(data));
  return postmaster === 0 || isOther ? undefined : postmaster;
}

/** Copies the files of a running server for a standby, as pg_basebackup does. */
async function copyFiles(primary: PostgresServer, data: string): Promise<void> {
  const client = new pg.Client({ connectionString: primary.url });
  await client.connect();
  try {
    // Both in one session: Postgres ends the backup with it.
    await client.query("SELECT pg_backup_start('standby', true)");
    const ofServer = (path: string) => /^postmaster\.(pid|opts)$/.test(basename(path));
    await cp(primary.data, data, { recursive: true, filter: (path) => !ofServer(path) });
    const { rows } = await client.query<{ labelfile: string }>(
      'SELECT labelfile FROM pg_backup_stop(false)',
    );
    await writeFile(join(data, 'backup_label'), rows[0]!.labelfile);
  } finally {
    await client.end();
  }
  await writeFile(join(data, 'standby.signal'), '');
  await appendFile(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=plants'\n`,
  );
}

/**
 * Finds the folder of the programs that Debian's packages install, such as `pgbench`.
 *
 * @throws Error that names the packages to install, when no server is installed
 */
export async function findInstalledPostgres(): Promise<string> {
  // Debian keeps them out of the path, in a folder per version.
  const root = '/usr/lib/postgresql';
  const versions = await readdir(root).catch(() => []);
  const folders = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(root, version, 'bin'));
  folders.push(...(process.env['PATH'] ?? '').split(delimiter));
  const folder = folders.find((path) => existsSync(join(path, 'pg_ctl')));
  if (folder === undefined) {
    throw new Error(
      'No Postgres server was found on this machine. Install one, such as with "apt-get install postgresql" or "brew install postgresql".',
    );
  }
  return folder;
}
