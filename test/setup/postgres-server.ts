import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { findFreePorts } from './ports.js';
import { childrenOf, isRunning } from './processes.js';
import { findUser, sendSignal } from './program.js';
import { until } from './until.js';

const exec = promisify(execFile);

/** A Postgres server that a test may kill, freeze and misconfigure. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
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

/**
 * Starts a server with the default settings: the commits that it acknowledged survive a crash.
 *
 * @param settings of postgresql.conf that differ
 * @param primary the server to follow as a standby; without it, the server has an empty database
 * @param parent the folder below which all files are
 * @throws Error when no server is installed, or it does not start
 */
export async function startPostgresServer(
  settings: Readonly<Record<string, string>> = {},
  primary?: PostgresServer,
  parent = tmpdir(),
): Promise<PostgresServer> {
  const bin = await findPostgresPrograms();
  const dir = await mkdtemp(join(parent, 'plant-store-server-'));
  const user = await findUser();
  // A server of Citus connects to others, and looks for its certificate in the home folder, which must not be that of root.
  const env = { ...process.env, HOME: dir };
  // Postgres refuses to run as root.
  const run = (command: string, args: string[]) => exec(command, args, { ...user, cwd: '/', env });
  const data = join(dir, 'data');
  const logFile = join(dir, 'log');
  const [port] = (await findFreePorts(1)) as [number];

  const start = async () => {
    const options = [`-p ${port} -k ${dir}`];
    for (const [name, value] of Object.entries({ listen_addresses: '127.0.0.1', ...settings })) {
      options.push(`-c ${name}=${value}`);
    }
    await run(join(bin, 'pg_ctl'), [
      '-D',
      data,
      '-l',
      logFile,
      '-w',
      '-o',
      options.join(' '),
      'start',
    ]);
  };
  const close = async () => {
    await run(join(bin, 'pg_ctl'), ['-D', data, '-m', 'immediate', 'stop']).catch(() => undefined);
    await rm(dir, { recursive: true });
  };
  const signalAll = async (signal: NodeJS.Signals) => {
    const [postmaster] = (await readFile(join(data, 'postmaster.pid'), 'utf8')).split('\n');
    // A postmaster that still runs would start processes that are missing in the list.
    sendSignal(Number(postmaster), 'SIGSTOP');
    const children = await childrenOf(Number(postmaster));
    for (const pid of [...children, Number(postmaster)]) sendSignal(pid, signal);
    return [...children, Number(postmaster)];
  };
  const url = `postgres://plants@127.0.0.1:${port}/plants_test`;
  const query = async <Row extends pg.QueryResultRow>(
    sql: string,
    parameters?: unknown[],
    to = url,
  ) => {
    const client = new pg.Client({ connectionString: to });
    await client.connect();
    try {
      return (await client.query<Row>(sql, parameters)).rows;
    } finally {
      await client.end();
    }
  };

  const administer = async (sql: string) => {
    await query(sql, [], `postgres://plants@127.0.0.1:${port}/postgres`);
  };

  try {
    if (user.uid !== undefined) await chown(dir, user.uid, user.gid);
    if (primary === undefined) {
      await run(join(bin, 'initdb'), ['-D', data, '-U', 'plants', '-A', 'trust', '-E', 'UTF8']);
      await start();
      await administer('CREATE DATABASE plants_test');
    } else {
      const from = ['-h', '127.0.0.1', '-p', String(primary.port), '-U', 'plants'];
      await run(join(bin, 'pg_basebackup'), [...from, '-D', data, '-R', '-c', 'fast']);
      await start();
    }
  } catch (error) {
    await close();
    throw error;
  }
  return {
    url,
    port,
    logFile,
    query: (sql, parameters) => query(sql, parameters),
    administer,
    async kill() {
      const pids = await signalAll('SIGKILL');
      await until(() => !pids.some(isRunning));
    },
    start,
    async freeze() {
      await signalAll('SIGSTOP');
    },
    async thaw() {
      await signalAll('SIGCONT');
    },
    close,
  };
}

/**
 * Finds the folder of `initdb`, `pg_ctl` and `pgbench`.
 *
 * @throws Error that names the packages to install, when no server is installed
 */
export async function findPostgresPrograms(): Promise<string> {
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
