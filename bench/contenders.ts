import { execFile } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findFreePorts } from '../test/setup/process/ports.js';
import type { Load, LoadGenerator, LoadResult, Target } from './load.js';
import { runPgbench } from './pgbench.js';
import type { BenchDatabase, BenchServer } from './postgres.js';
import { startServerProcess, type ServerProcess } from './processes.js';
import { ROOT } from '../test/setup/process/command.js';
import { versionOf } from './repository.js';
import { LABELS, type ContenderName } from './results.js';

const exec = promisify(execFile);

/** A program that stores plants, or the echo, which only responds as if it did. */
export interface Contender {
  readonly name: ContenderName;
  /** The address for requests; undefined for Postgres itself. */
  readonly target?: Target;
  /** undefined for the echo. */
  readonly database?: BenchDatabase;
  /** undefined for Postgres itself. */
  readonly process?: ServerProcess;
  /** Puts the contender under load. */
  run(load: Load): Promise<LoadResult>;
  close(): Promise<void>;
}

/** Settings of the service that differ from production. */
const OUR_SETTINGS: Partial<Record<ContenderName, Record<string, string>>> = {
  ours: {},
  unbatched: { DATABASE_BATCH_SIZE: '1' },
  oursInFour: { WEB_CONCURRENCY: '4' },
  oursOnFull: {},
  oursOnShards: {},
};

const PEERS: Partial<Record<ContenderName, string>> = {
  fastify: 'fastify',
  express: 'express',
  nest: 'nest-typeorm',
  echo: 'echo',
};

/** @returns the versions of the packages that the contenders use */
export function contenderVersions(): Record<string, string> {
  const packages = ['fastify', 'express', '@nestjs/core', 'typeorm', 'pg'];
  return Object.fromEntries(packages.map((name) => [name, versionOf(name)]));
}

/** The server, the load generator and the folder that all contenders share. */
export interface MeasuringContext {
  readonly server: BenchServer;
  readonly generator: LoadGenerator;
  /** The folder for logs. */
  readonly folder: string;
  readonly signal: AbortSignal;
}

/**
 * Starts a contender on a database of its own, and checks that it stores plants.
 *
 * @throws Error when it does not start, or does not store a plant
 */
export async function startContender(
  name: ContenderName,
  context: MeasuringContext,
): Promise<Contender> {
  const { server } = context;
  const database = name === 'echo' ? undefined : await server.createDatabase();
  try {
    if (name === 'postgres') await database!.createTable();
    if (name === 'postgres' || name === 'citus') return postgresItself(name, database!);
    const settings = OUR_SETTINGS[name];
    const contender =
      settings === undefined
        ? await startPeer(name, database, context)
        : await startOurs(name, settings, database!, context);
    await check(contender).catch(async (error: unknown) => {
      await contender.process!.stop();
      throw error;
    });
    return contender;
  } catch (error) {
    await database?.drop();
    throw error;
  }
}

function postgresItself(name: 'postgres' | 'citus', database: BenchDatabase): Contender {
  return {
    name,
    database,
    run: (load) => runPgbench(database.url, load),
    close: () => database.drop(),
  };
}

async function startOurs(
  name: ContenderName,
  settings: Record<string, string>,
  database: BenchDatabase,
  context: MeasuringContext,
): Promise<Contender> {
  const env = { DATABASE_URL: database.url, NODE_ENV: 'production' };
  // The command also makes the table.
  const run = (...command: string[]) =>
    exec(process.execPath, ['dist/cli.js', ...command], {
      cwd: ROOT,
      env: { PATH: process.env['PATH'], ...env },
      signal: context.signal,
    });
  const { stdout } = await run('token', 'create', 'bench');
  if (name === 'oursOnShards') await run('migrate', '--distribute');
  return startHttp(
    name,
    [join(ROOT, 'plant-store'), 'start'],
    { ...env, ...settings },
    { token: stdout.trim() },
    database,
    context,
  );
}

async function startPeer(
  name: ContenderName,
  database: BenchDatabase | undefined,
  context: MeasuringContext,
): Promise<Contender> {
  await database?.createTable();
  const script = join(import.meta.dirname, 'peers', `${PEERS[name]}.js`);
  const env: Record<string, string> = { NODE_ENV: 'production' };
  if (database !== undefined) env['DATABASE_URL'] = database.url;
  return startHttp(name, [process.execPath, script], env, {}, database, context);
}

async function startHttp(
  name: ContenderName,
  command: readonly string[],
  env: Record<string, string>,
  credentials: Pick<Target, 'token'>,
  database: BenchDatabase | undefined,
  { generator, folder, signal }: MeasuringContext,
): Promise<Contender> {
  const [port] = (await findFreePorts(1)) as [number];
  const target = { url: `http://127.0.0.1:${port}`, ...credentials };
  const server = await startServerProcess(
    command,
    { ...env, HOST: '127.0.0.1', PORT: String(port) },
    port,
    join(folder, `${name}.log`),
    signal,
  );
  return {
    name,
    target,
    ...(database === undefined ? {} : { database }),
    process: server,
    run: (load) => generator.run(target, load),
    async close() {
      await server.stop();
      await database?.drop();
    },
  };
}

/** A contender that fails responds fast: only one that really stores a plant may be measured. */
async function check({ name, target, database }: Contender): Promise<void> {
  const plant = { id: randomInt(2 ** 48 - 1), name: 'Equisetum fluviatile', tag: 'Equisetum' };
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (target!.token !== undefined) headers['authorization'] = `Bearer ${target!.token}`;
  const body = JSON.stringify(plant);
  const response = await fetch(`${target!.url}/plants`, { method: 'POST', headers, body });
  const text = await response.text();
  if (!response.ok || !text.includes(plant.name)) {
    throw new Error(`${LABELS[name]} responded to a plant with ${response.status}: ${text}`);
  }
  if (database !== undefined && !(await database.hasPlant(plant.id))) {
    throw new Error(`${LABELS[name]} responded with ${response.status}, but stored nothing.`);
  }
}
