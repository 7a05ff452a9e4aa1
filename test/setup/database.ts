import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { afterAll } from '@jest/globals';
import pg from 'pg';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '../../src/database/embedded/embedded-postgres.js';
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

/** The servers of this test file that no test uses now: starting one takes a second, emptying one takes much less. */
const idleServers: EmbeddedPostgres[] = [];

afterAll(async () => {
  for (const server of idleServers) await server.close();
});

async function openEmbedded(): Promise<TestDatabase> {
  const server = idleServers.pop() ?? (await startServer());
  const client = await connect(server.url);
  // All connections share one session, so the settings of the last test are still in force.
  await client.query('DISCARD ALL');
  await client.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
  return {
    url: server.url,
    query: (sql, parameters) => rowsOf(client, sql, parameters),
    async close() {
      await client.end();
      idleServers.push(server);
    },
  };
}

async function startServer(): Promise<EmbeddedPostgres> {
  const dataDir = await makeDataDir();
  const server = await startEmbeddedPostgres(dataDir, true);
  return {
    url: server.url,
    async close() {
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
