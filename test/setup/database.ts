import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import pg from 'pg';
import { startEmbeddedPostgres } from '../../src/database/embedded/embedded-postgres.js';
import { makeDataDir } from './data-dir.js';

/** An empty database that no other test uses. */
export interface TestDatabase {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

/** Whether the tests run on a real server; the embedded Postgres has one session for all connections. */
export const isOnServer = process.env['TEST_DATABASE_URL'] !== undefined;

/** A schema of its own on the server in `TEST_DATABASE_URL`, or an embedded Postgres of its own. */
export function openTestDatabase(): Promise<TestDatabase> {
  const serverUrl = process.env['TEST_DATABASE_URL'];
  return serverUrl === undefined ? openEmbedded() : openSchema(serverUrl);
}

/**
 * Global setup starts an embedded server for each worker of Jest, which runs one test file after the other: starting a
 * server takes a second, emptying it takes much less.
 */
let isWorkerServerFree = true;

async function openEmbedded(): Promise<TestDatabase> {
  if (!isWorkerServerFree) return startEmbedded();
  isWorkerServerFree = false;
  const urls = JSON.parse(process.env['TEST_EMBEDDED_URLS']!) as string[];
  const url = urls[Number(process.env['JEST_WORKER_ID']) - 1]!;
  const client = await connect(url);
  // All connections share one session, so the settings of the last test are still in force.
  await client.query('DISCARD ALL');
  await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  return {
    url,
    query: (sql, parameters) => rowsOf(client, sql, parameters),
    async close() {
      await client.end();
      isWorkerServerFree = true;
    },
  };
}

/** For a test that needs another database at the same time. */
async function startEmbedded(): Promise<TestDatabase> {
  const dataDir = await makeDataDir();
  const server = await startEmbeddedPostgres(dataDir, true);
  const client = await connect(server.url);
  return {
    url: server.url,
    query: (sql, parameters) => rowsOf(client, sql, parameters),
    async close() {
      await client.end();
      await server.close();
      await rm(dataDir, { recursive: true });
    },
  };
}

async function openSchema(serverUrl: string): Promise<TestDatabase> {
  // The tests create and drop schemas, so they refuse a database that is not meant for tests.
  if (!new URL(serverUrl).pathname.includes('test')) {
    throw new Error('TEST_DATABASE_URL must name a database with "test" in its name.');
  }
  const schema = `test_${randomBytes(6).toString('hex')}`;
  const url = new URL(serverUrl);
  url.searchParams.set('options', `-c search_path=${schema}`);
  const client = await connect(url.href);
  await client.query(`CREATE SCHEMA ${schema}`);
  return {
    url: url.href,
    query: (sql, parameters) => rowsOf(client, sql, parameters),
    async close() {
      await client.query(`DROP SCHEMA ${schema} CASCADE`);
      await client.end();
    },
  };
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  return client;
}

async function rowsOf<Row extends pg.QueryResultRow>(
  client: pg.Client,
  sql: string,
  parameters?: unknown[],
): Promise<Row[]> {
  return (await client.query<Row>(sql, parameters)).rows;
}
