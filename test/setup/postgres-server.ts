import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { childrenOf, isRunning } from './processes.js';
import { until } from './until.js';

const exec = promisify(execFile);

/** A Postgres server that a test may kill, freeze and misconfigure. */
export interface PostgresServer {
  readonly url: string;
  readonly port: number;
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
 * @throws Error when no server is installed, or it does not start
 */
export async function startPostgresServer(
  settings: Readonly<Record<string, string>> = {},
  primary?: PostgresServer,
): Promise<PostgresServer> {
  const bin = await findPostgresPrograms();
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-server-'));
  const isRoot = process.getuid?.() === 0;
  // Postgres refuses to run as root.
  const run = (command: string, args: string[]) =>
    isRoot ? exec('runuser', ['-u', 'postgres', '--', command, ...args]) : exec(command, args);
  const data = join(dir, 'data');
  const port = await findFreePort();

  const start = async () => {
    const options = [`-p ${port} -k ${dir}`];
    for (const [name, value] of Object.entries({ listen_addresses: '127.0.0.1', ...settings })) {
      options.push(`-c ${name}=${value}`);
    }
    await run(join(bin, 'pg_ctl'), [
      '-D',
      data,
      '-l',
      join(dir, 'log'),
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
    const pids = [Number(postmaster), ...(await childrenOf(Number(postmaster)))];
    for (const pid of pids) process.kill(pid, signal);
    return pids;
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
    if (isRoot) await chown(dir, await idOf('postgres', '-u'), await idOf('postgres', '-g'));
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

/** A PgBouncer in transaction mode in front of a server. */
export async function startPgBouncer(
  server: PostgresServer,
): Promise<{ url: string; close(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-bouncer-'));
  const isRoot = process.getuid?.() === 0;
  const port = await findFreePort();
  const config = join(dir, 'pgbouncer.ini');
  await writeFile(join(dir, 'users.txt'), '"plants" ""\n');
  await writeFile(
    config,
    `[databases]
plants_test = host=127.0.0.1 port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(dir, 'users.txt')}
pool_mode = transaction
default_pool_size = 4
`,
  );
  if (isRoot) {
    const [uid, gid] = [await idOf('postgres', '-u'), await idOf('postgres', '-g')];
    for (const path of [dir, config, join(dir, 'users.txt')]) await chown(path, uid, gid);
  }
  const args = ['/usr/sbin/pgbouncer', config];
  const bouncer = isRoot
    ? spawn('runuser', ['-u', 'postgres', '--', ...args], { stdio: ['ignore', 'ignore', 'pipe'] })
    : spawn(args[0]!, args.slice(1), { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(bouncer, 'close');
  for await (const chunk of bouncer.stderr) {
    if (String(chunk).includes('process up')) break;
  }
  bouncer.stderr.resume();
  return {
    url: `postgres://plants@127.0.0.1:${port}/plants_test`,
    async close() {
      bouncer.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true });
    },
  };
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function idOf(user: string, flag: '-u' | '-g'): Promise<number> {
  return Number((await exec('id', [flag, user])).stdout);
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
