import { randomBytes } from 'node:crypto';
import { totalmem } from 'node:os';
import {
  findInstalledPostgres,
  startPostgresServer,
  type PostgresServer,
} from '../test/setup/database/postgres-server.js';
import { queryOnce } from '../test/setup/database/query-once.js';

/** The Postgres server that all contenders use. */
export interface BenchServer {
  readonly version: string;
  /** The settings of the server that determine speed and durability. */
  readonly settings: Readonly<Record<string, string>>;
  /** Makes a database for one contender. */
  createDatabase(): Promise<BenchDatabase>;
  close(): Promise<void>;
}

export interface BenchDatabase {
  readonly url: string;
  /** Makes the table for a contender that has no migrations. */
  createTable(): Promise<void>;
  count(): Promise<number>;
  hasPlant(id: number): Promise<boolean>;
  empty(): Promise<void>;
  /** Adds plants whose ids are spread over all int64. */
  fill(from: number, to: number): Promise<void>;
  /** Updates statistics and writes everything to disk, so that no round pays for earlier work. */
  settle(): Promise<void>;
  drop(): Promise<void>;
}

/** Enough for all rounds up to the full table. */
const WAL_FILES = 128;

const WAL_FILE_MEGABYTES = 16;

const SHOWN_SETTINGS = [
  'fsync',
  'synchronous_commit',
  'full_page_writes',
  'shared_buffers',
  'max_wal_size',
  'max_connections',
];

async function startInstalled(): Promise<PostgresServer> {
  return startPostgresServer({
    settings: durableSettings(1),
    programs: await findInstalledPostgres(),
  });
}

/**
 * Opens the server in `databaseUrl`, or starts a durable one in a temporary folder: it responds to a commit after
 * writing it to disk.
 *
 * @throws Error when no server can be used
 */
export async function openBenchServer(databaseUrl: string | undefined): Promise<BenchServer> {
  if (databaseUrl !== undefined) return connectTo(databaseUrl, () => Promise.resolve());
  const own = await startInstalled().catch((error: Error) => {
    throw new Error(`${error.message}\nOr name a server in DATABASE_URL.`, { cause: error });
  });
  try {
    await makeLogFiles(own.url);
    return await connectTo(own.url, () => own.close());
  } catch (error) {
    await own.close();
    throw error;
  }
}

/**
 * @param servers the number of servers on this machine
 * @returns the settings of a server that commits to disk
 */
export function durableSettings(servers: number): Record<string, string> {
  // A quarter of the memory is the recommendation of Postgres' manual.
  const memory = Math.min(totalmem() / 4 / servers, 4 * 1024 ** 3);
  return {
    max_connections: '300',
    shared_buffers: `${Math.floor(memory / 1024 ** 2)}MB`,
    // With the default of 1 GB, a checkpoint would fall into some rounds and not into others.
    max_wal_size: '8GB',
    checkpoint_timeout: '1h',
    min_wal_size: `${WAL_FILES * WAL_FILE_MEGABYTES}MB`,
  };
}

/**
 * Makes the files of the write-ahead log in advance. A server that has run for a while reuses its files. A new one has
 * to make each file, and all commits wait some fifty milliseconds for it.
 */
async function makeLogFiles(url: string): Promise<void> {
  await queryOnce(
    url,
    `SELECT pg_switch_wal() FROM generate_series(1, ${WAL_FILES})
     WHERE pg_logical_emit_message(false, 'bench', '') IS NOT NULL`,
  );
  await queryOnce(url, 'CHECKPOINT');
}

export async function connectTo(
  serverUrl: string,
  close: () => Promise<void>,
): Promise<BenchServer> {
  const [version] = await queryOnce<{ server_version: string }>(
    serverUrl,
    'SHOW server_version',
  ).catch((error: Error) => {
    throw new Error(`The Postgres server cannot be used: ${error.message || error.name}`, {
      cause: error,
    });
  });
  const settings: Record<string, string> = {};
  for (const name of SHOWN_SETTINGS) {
    const [row] = await queryOnce<Record<string, string>>(serverUrl, `SHOW ${name}`);
    settings[name] = row![name]!;
  }
  return {
    version: version!.server_version,
    settings,
    createDatabase: () => createDatabase(serverUrl),
    close,
  };
}

async function createDatabase(serverUrl: string): Promise<BenchDatabase> {
  const name = `plant_store_bench_${randomBytes(6).toString('hex')}`;
  await queryOnce(serverUrl, `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`).catch(
    (error: Error) => {
      throw new Error(
        `The benchmark makes databases of its own, and the server refused: ${error.message}. Give the role of DATABASE_URL the right: ALTER ROLE … CREATEDB.`,
        { cause: error },
      );
    },
  );
  const databaseUrl = new URL(serverUrl);
  databaseUrl.pathname = `/${name}`;
  return {
    ...openDatabase(databaseUrl.href),
    async drop() {
      await queryOnce(serverUrl, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}

export function openDatabase(url: string): Omit<BenchDatabase, 'drop'> {
  return {
    url,
    async createTable() {
      await queryOnce(
        url,
        'CREATE TABLE plants (id bigint PRIMARY KEY, name text NOT NULL, tag text)',
      );
    },
    async count() {
      const [row] = await queryOnce<{ count: string }>(url, 'SELECT count(*) FROM plants');
      return Number(row!.count);
    },
    async hasPlant(id) {
      return (await queryOnce(url, `SELECT FROM plants WHERE id = ${id}`)).length === 1;
    },
    async empty() {
      await queryOnce(url, 'TRUNCATE plants');
    },
    async fill(from, to) {
      await queryOnce(
        url,
        `INSERT INTO plants (id, name, tag)
         SELECT ('x' || left(md5(i::text), 16))::bit(64)::bigint, 'Equisetum fluviatile', 'Equisetum'
         FROM generate_series(${from + 1}, ${to}) AS i`,
      );
    },
    async settle() {
      await queryOnce(url, 'VACUUM ANALYZE plants');
      await queryOnce(url, 'CHECKPOINT').catch((error: Error) => {
        throw new Error(
          `The server refused a CHECKPOINT, without which rounds pay for earlier work: ${error.message}. Give the role the right: GRANT pg_checkpoint TO ….`,
          { cause: error },
        );
      });
    },
  };
}
