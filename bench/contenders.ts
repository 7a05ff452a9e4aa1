import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import {
  findInstalledPostgres,
  startPostgresServer,
} from '../test/setup/database/postgres-server.js';
import { queryOnce } from '../test/setup/database/query-once.js';
import { ROOT } from '../test/setup/process/command.js';
import { findFreePorts } from '../test/setup/process/ports.js';
import { startProgram } from '../test/setup/process/program.js';

const START_TIMEOUT_MS = 30_000;

interface Kind {
  readonly name: string;
  /** The file in `peers`; undefined for the service. */
  readonly peer?: string;
}

/** The first is compared with the others. */
export const CONTENDERS: readonly Kind[] = [
  { name: 'Plant Store' },
  { name: 'Fastify + pg', peer: 'fastify' },
  { name: 'Express + pg', peer: 'express' },
  { name: 'NestJS + TypeORM save()', peer: 'nest-typeorm' },
  { name: 'node:http echo, no database', peer: 'echo' },
];

/** @returns the address of the server in DATABASE_URL, or of one that is started and writes each commit to disk */
export async function openServer(started: AsyncDisposableStack): Promise<string> {
  const { DATABASE_URL } = process.env;
  if (DATABASE_URL !== undefined) return DATABASE_URL;
  // Without Debian's Postgres, the one that npm installs for the service is started.
  const programs = await findInstalledPostgres().catch(() => undefined);
  const server = await startPostgresServer({
    ...(programs !== undefined && { programs }),
    // By default, a checkpoint would fall into some rounds and not into others.
    settings: { max_wal_size: '8GB', checkpoint_timeout: '1h' },
  });
  started.defer(() => server.close());
  return server.url;
}

/** A program that responds to plants. */
export interface Contender {
  readonly name: string;
  readonly pid: number;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /** The address of the database of its own; undefined if it stores nothing. */
  readonly database: string | undefined;
  readonly logFile: string;
}

/** @throws Error with the end of its log when it does not start */
export async function startContender(
  { name, peer }: Kind,
  server: string,
  started: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Contender> {
  signal.throwIfAborted();
  const [port] = (await findFreePorts(1)) as [number];
  const url = `http://127.0.0.1:${port}/plants`;
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  const database = peer === 'echo' ? undefined : await createDatabase(server, started);
  const env = {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(port),
    ...(database !== undefined && { DATABASE_URL: database }),
  };

  let command = [join(ROOT, 'plant-store'), 'start'];
  if (peer === undefined) {
    // This command also makes the tables.
    const { stdout } = await promisify(execFile)(command[0]!, ['token', 'create', 'bench'], {
      env: { PATH: process.env['PATH'], ...env },
      signal,
    });
    headers['authorization'] = `Bearer ${stdout.trim()}`;
  } else {
    command = [process.execPath, join(import.meta.dirname, `peers/${peer}.js`)];
    const columns = 'id bigint PRIMARY KEY, name text NOT NULL, tag text';
    if (database !== undefined) await queryOnce(database, `CREATE TABLE plants (${columns})`);
  }

  const folder = await mkdtemp(join(tmpdir(), 'plant-store-bench-'));
  started.defer(() => rm(folder, { recursive: true }));
  const logFile = join(folder, 'log');
  const program = await startProgram(command, logFile, { env, cwd: ROOT });
  started.defer(() => program.stop());
  const deadline = performance.now() + START_TIMEOUT_MS;
  // Any response will do: that they store plants, the first round shows.
  while (!(await fetch(url, { method: 'HEAD', signal }).catch(() => undefined))) {
    signal.throwIfAborted();
    if (program.hasEnded() || performance.now() > deadline) {
      throw new Error(`${name} did not start.\n${await endOf(logFile)}`);
    }
    await delay(50);
  }
  return { name, pid: program.pid, url, headers, database, logFile };
}

async function createDatabase(server: string, started: AsyncDisposableStack): Promise<string> {
  const name = `plant_store_bench_${randomBytes(6).toString('hex')}`;
  await queryOnce(server, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
  started.defer(async () => {
    await queryOnce(server, `DROP DATABASE ${name} WITH (FORCE)`);
  });
  const url = new URL(server);
  url.pathname = name;
  return url.href;
}

export async function endOf(logFile: string): Promise<string> {
  return (await readFile(logFile, 'utf8')).trim().split('\n').slice(-10).join('\n');
}
