import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { makeHostileIfUsed } from './hostile-settings.js';
import { queryOnce } from './query-once.js';

/** An empty database that no other test uses. */
export interface TestDatabase {
  readonly url: string;
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  /** Changes a setting of all sessions that begin from now on. */
  set(name: string, value: string): Promise<void>;
  close(): Promise<void>;
}

/**
 * Makes a database on the server in `TEST_DATABASE_URL`, which is the embedded Postgres unless a developer names another one.
 * `UnitDatabase` does so for unit tests, and `startService` for tests with a service in their process.
 */
export async function openTestDatabase(): Promise<TestDatabase> {
  const server = process.env['TEST_DATABASE_URL']!;
  const name = `plant_store_test_${randomBytes(6).toString('hex')}`;
  // Without the log of every page, this takes half the time.
  const options = "TEMPLATE template0 ENCODING 'UTF8' STRATEGY file_copy";
  await queryOnce(server, `CREATE DATABASE ${name} ${options}`);
  const url = server.replace(/^(\w+:\/\/[^/]*)\/[^?]*/, `$1/${name}`);
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await makeHostileIfUsed(
    async (sql) => (await client.query<pg.QueryResultRow>(sql)).rows,
    `DATABASE ${name}`,
  );
  return {
    url,
    query: async <Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]) =>
      (await client.query<Row>(sql, parameters)).rows,
    async set(setting, value) {
      await client.query(`ALTER DATABASE ${name} SET ${setting} = ${value}`);
    },
    async close() {
      await client.end();
      await queryOnce(server, `DROP DATABASE ${name} WITH (FORCE)`);
    },
  };
}
