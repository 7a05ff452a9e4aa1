// Waits for the database, and brings its schema up to date.

import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'pg-connection-string';
import { MigrationExecutor, type DataSource } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { ServiceError } from '../errors/service-error.js';
import { StartError } from '../errors/start-error.js';
import { databaseOptions } from './database-options.js';
import { describeDatabaseError, isMisconfigured, isUnavailable } from './postgres-errors.js';
import { schemaProblem, type NeededPrivilege } from './schema-problem.js';
import { withDataSource } from './with-data-source.js';

const RETRY_INTERVAL_MS = 1000;

/** Any number, as long as all processes that migrate this schema use the same one. */
const MIGRATION_LOCK = 0x706c616e74;

/**
 * Brings the schema up to date, and waits for a database that cannot be reached yet, does not respond, or is being migrated by
 * another process. No attempt begins after `config.startTimeout`; with 0, there is one.
 *
 * @param log receives a message when the wait begins, and when its reason changes
 * @throws StartError when the database cannot be used within `config.startTimeout`, or no retry can help
 */
export function prepareDatabase(
  config: DatabaseConfig,
  log: (message: string) => void,
): Promise<void> {
  return retry(config, log, (limit) => migrate(config, limit));
}

/**
 * Looks whether the service can do its work on the database, and changes nothing.
 *
 * @param needed all privileges that requests need
 * @returns false if the service can, but a start would bring the schema up to date before
 * @throws StartError when it cannot
 */
export function inspectDatabase(
  config: DatabaseConfig,
  needed: readonly NeededPrivilege[],
): Promise<boolean> {
  return retry(
    { ...config, startTimeout: 0 },
    () => undefined,
    () =>
      withDataSource(databaseOptions(config), async (dataSource) => {
        if (await isBehind(dataSource)) {
          await refuseIfStuck(dataSource);
          return false;
        }
        const problem = await schemaProblem(dataSource, needed);
        if (problem !== undefined) throw problem;
        return true;
      }),
  );
}

/** @param work gets the time that is left, in milliseconds */
async function retry<Result>(
  config: DatabaseConfig,
  log: (message: string) => void,
  work: (limit: number) => Promise<Result>,
): Promise<Result> {
  const address = addressOf(config);
  // A monotonic clock: many machines set their date while their services start.
  const deadline = performance.now() + config.startTimeout;
  let logged = '';
  for (;;) {
    try {
      return await work(Math.max(deadline - performance.now(), config.timeout));
    } catch (error) {
      const cause = error instanceof ServiceError ? error.cause : error;
      const reason = describeDatabaseError(cause);
      if (!isUnavailable(cause) || isMisconfigured(cause) || config.startTimeout === 0) {
        throw new StartError(`The database at ${address} cannot be used: ${reason}`, { cause });
      }
      if (performance.now() + RETRY_INTERVAL_MS > deadline) {
        throw new StartError(
          `The database at ${address} could not be used within ${config.startTimeout} ms: ${reason}`,
          { cause },
        );
      }
      if (reason !== logged) log(`Waiting for the database at ${address}: ${reason}`);
      logged = reason;
      await delay(RETRY_INTERVAL_MS);
    }
  }
}

/** The address without user, password and parameters. */
export function addressOf({ url, isEmbedded, dataDir }: DatabaseConfig): string {
  // Not the path of the socket: for a command it is temporary, and no longer exists when the operator looks.
  if (isEmbedded === true) return dataDir;
  const { host, port, database, user } = parse(url);
  return `${host || 'localhost'}:${port || 5432}/${database ?? user ?? ''}`;
}

/**
 * Runs all pending migrations in one transaction. Its lock lets one process migrate at a time, also behind a pooler.
 *
 * @param limit of each statement of a migration, in milliseconds
 * @throws StartError when the database cannot hold every plant; or the error of the database
 */
async function migrate(config: DatabaseConfig, limit: number): Promise<void> {
  if (!(await withDataSource(databaseOptions(config), isBehind))) return;
  const milliseconds = Math.ceil(limit);
  await withDataSource(databaseOptions(config, milliseconds), (dataSource) =>
    dataSource.transaction(async ({ queryRunner }) => {
      // Also behind a pooler. While a migration waits for a lock, requests of other instances wait behind it.
      await queryRunner!.query(
        `SET LOCAL statement_timeout = ${milliseconds}; SET LOCAL lock_timeout = ${Math.ceil(config.timeout / 2)}`,
      );
      const [row] = (await queryRunner!.query('SELECT pg_try_advisory_xact_lock($1) AS "isOurs"', [
        MIGRATION_LOCK,
      ])) as { isOurs: boolean }[];
      if (row?.isOurs !== true)
        throw new Error('another process is bringing the schema up to date');
      const executor = new MigrationExecutor(dataSource, queryRunner);
      // They run in the transaction that has begun.
      executor.transaction = 'none';
      await executor.executePendingMigrations();
    }),
  );
}

/** @throws StartError when the database cannot hold every plant */
async function isBehind(dataSource: DataSource): Promise<boolean> {
  await refuseOtherEncodings(dataSource);
  return (await new MigrationExecutor(dataSource).getPendingMigrations()).length > 0;
}

const FIND_OBSTACLE = `
  SELECT CASE
    WHEN NOT has_table_privilege(to_regclass('migrations'), 'SELECT')
      THEN 'the role ' || current_user || ' may not read the table migrations'
    WHEN current_setting('transaction_read_only') = 'on' THEN 'it is read-only'
    WHEN has_schema_privilege(current_schema(), 'CREATE') IS NOT TRUE THEN 'the role ' || current_user
      || ' may not create tables in ' || coalesce('the schema ' || current_schema(), 'any schema of search_path')
    WHEN to_regclass('migrations') IS NULL AND to_regclass('plants') IS NOT NULL
      THEN 'the table migrations is missing beside the table plants'
  END AS obstacle`;

/** @throws StartError when a start could not bring the schema up to date */
async function refuseIfStuck(dataSource: DataSource): Promise<void> {
  const [row] = await dataSource.query<{ obstacle: string | null }[]>(FIND_OBSTACLE);
  if (row?.obstacle) {
    throw new StartError(`its schema cannot be brought up to date: ${row.obstacle}.`);
  }
}

/** A database with another encoding would refuse or change some names that are valid in UTF-8. */
async function refuseOtherEncodings(dataSource: DataSource): Promise<void> {
  const [row] = await dataSource.query<{ server_encoding: string }[]>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8') {
    throw new StartError(
      `it uses the encoding ${row?.server_encoding}. Create it with ENCODING 'UTF8'.`,
    );
  }
}
