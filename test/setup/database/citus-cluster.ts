import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type pg from 'pg';
import {
  findInstalledPostgres,
  startPostgresServer,
  type PostgresServer,
} from './postgres-server.js';
import { queryOnce } from './query-once.js';

/** A database that Citus distributes over several servers, without tables. */
export interface CitusCluster {
  /** The database on the coordinator. */
  readonly url: string;
  /** The servers, which a test may kill; undefined for a cluster that the test did not start. */
  readonly servers?: { readonly coordinator: PostgresServer; readonly workers: PostgresServer[] };
  query<Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]): Promise<Row[]>;
  close(): Promise<void>;
}

const SETTINGS = {
  shared_preload_libraries: 'citus',
  max_connections: '200',
  max_prepared_transactions: '200',
};

/** @returns the reason why no cluster can be started on this machine; undefined if one can */
export async function whyNoCitus(): Promise<string | undefined> {
  try {
    const programs = await findInstalledPostgres();
    const { stdout } = await promisify(execFile)(join(programs, 'pg_config'), ['--sharedir']);
    const extension = join(stdout.trim(), 'extension/citus.control');
    return existsSync(extension) ? undefined : `Citus is not installed: ${extension} is missing`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Starts a coordinator and two workers, or opens the cluster in `TEST_CITUS_URL`. */
export async function openCitusCluster(): Promise<CitusCluster> {
  const url = process.env['TEST_CITUS_URL'];
  if (url === undefined) return startCitusCluster(2);
  const cluster: CitusCluster = {
    url,
    query: (sql, parameters) => queryOnce(url, sql, parameters),
    close: () => Promise.resolve(),
  };
  // The tests drop tables, so they refuse a database that is not meant for tests.
  if (!new URL(url).pathname.includes('test')) {
    throw new Error('TEST_CITUS_URL must name a database with "test" in its name.');
  }
  await cluster.query('DROP TABLE IF EXISTS plants, access_tokens, migrations');
  return cluster;
}

/** @param count the number of workers */
export async function startCitusCluster(
  count: number,
  settings: Readonly<Record<string, string>> = {},
): Promise<CitusCluster> {
  const programs = await findInstalledPostgres();
  const starting = Array.from({ length: count + 1 }, () =>
    startPostgresServer({ settings: { ...SETTINGS, ...settings }, programs }),
  );
  const servers = (await Promise.allSettled(starting)).map((outcome) => {
    if (outcome.status === 'rejected') throw outcome.reason;
    return outcome.value;
  });
  for (const server of servers) await server.query('CREATE EXTENSION citus');
  const coordinator = servers[0]!;
  const workers = servers.slice(1);
  await coordinator.query(`SELECT citus_set_coordinator_host('127.0.0.1', $1)`, [coordinator.port]);
  for (const { port } of workers) {
    await coordinator.query(`SELECT citus_add_node('127.0.0.1', $1)`, [port]);
  }
  return {
    url: coordinator.url,
    servers: { coordinator, workers },
    query: (sql, parameters) => coordinator.query(sql, parameters),
    async close() {
      for (const server of servers) await server.close();
    },
  };
}
