import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { parse } from 'pg-connection-string';
import { DataSource, MigrationExecutor, type EntityManager, type QueryRunner } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { untilClosed } from './connection.js';
import { databaseOptions, SERVER_PART, type PoolOptions } from './database-options.js';
import {
  describeDatabaseError,
  isMisconfigured,
  isTimeout,
  isUnavailable,
  isUnsupported,
  READ_TIMEOUT,
} from './postgres-errors.js';
import { beginOf } from './session.js';

const RETRY_INTERVAL_MS = 1000;

/** How often the same reason for the wait is logged. */
const LOG_INTERVAL_MS = 30_000;

/** The last attempt has at least this time, however near the end is. */
const MIN_TIMEOUT_MS = 500;

/** Any number, as long as all processes that migrate this schema use the same one. */
const MIGRATION_LOCK = 0x706c616e74;

/** Another process is bringing the schema up to date right now. */
class MigrationInProgressError extends Error {}

/**
 * Brings the schema up to date, and waits for a database that cannot be reached yet, does not respond, or has its tables
 * locked by another session. Every attempt has a time limit, so this ends within `config.startTimeout` and half a second; with
 * 0, there is one attempt.
 *
 * @param log receives a message when the wait begins, when its reason changes, and every 30 seconds
 * @throws StartError when the database cannot be used within `config.startTimeout`, or no retry can help
 */
export async function prepareDatabase(
  config: DatabaseConfig,
  log: (message: string) => void,
): Promise<void> {
  const address = addressOf(config);
  // A monotonic clock: many machines set their date while their services start.
  const deadline = performance.now() + config.startTimeout;
  let logged: { readonly reason: string; readonly at: number } | undefined;
  for (;;) {
    const isOnlyAttempt = config.startTimeout === 0;
    const limit = isOnlyAttempt
      ? config.timeout
      : Math.ceil(Math.max(deadline - performance.now(), MIN_TIMEOUT_MS));
    // Many statements that each respond in time could take longer, and so does the ROLLBACK after one that does not.
    const end = isOnlyAttempt ? undefined : AbortSignal.timeout(limit);
    try {
      await migrate({ ...config, timeout: Math.min(config.timeout, limit) }, log, limit, end);
      return;
    } catch (error) {
      // With less time than the others, the last attempt may end before the server says why it waits.
      const isCutShort = limit < config.timeout && isTimeout(error);
      const reason =
        isCutShort && logged !== undefined ? logged.reason : describeDatabaseError(error);
      const isTransient = isTransientFailure(error);
      if (!isTransient || performance.now() + RETRY_INTERVAL_MS > deadline) {
        const failure = isTransient
          ? `could not be used within ${config.startTimeout} ms`
          : 'cannot be used';
        throw new StartError(`The database at ${address} ${failure}: ${reason}`, { cause: error });
      }
      const now = performance.now();
      if (reason !== logged?.reason || now - logged.at >= LOG_INTERVAL_MS) {
        log(`Waiting for the database at ${address}: ${reason}`);
        logged = { reason, at: now };
      }
      await delay(RETRY_INTERVAL_MS);
    }
  }
}

function isTransientFailure(error: unknown): boolean {
  if (error instanceof MigrationInProgressError) return true;
  return isUnavailable(error) && !isMisconfigured(error);
}

/** The address without user, password and parameters. */
export function addressOf({ url, isEmbedded, dataDir }: DatabaseConfig): string {
  // Not the path of the socket: for a command it is temporary, and no longer exists when the operator looks.
  if (isEmbedded === true) return dataDir;
  const { host, port, database, user } = parse(url);
  return `${host || 'localhost'}:${port || 5432}/${database ?? user ?? ''}`;
}

/**
 * Runs every pending migration, in one transaction.
 *
 * If several processes call this at once, one migrates; the others get a MigrationInProgressError and must call again.
 * The lock is held by the transaction and not by the session, so it also holds behind PgBouncer in transaction
 * mode. Where the database has no such lock, there is only a warning.
 *
 * @param log receives this warning
 * @param limit of each statement of a migration, in milliseconds; for everything else, it is `config.timeout`
 * @param end aborted when the time for all statements together is over
 * @returns the names of the migrations that ran
 * @throws MigrationInProgressError, or the reason why the database cannot be used
 */
export async function migrate(
  config: DatabaseConfig,
  log: (message: string) => void,
  limit: number,
  end?: AbortSignal,
): Promise<string[]> {
  const pending = await inDatabase(config, config.timeout, end, async (manager) => {
    await refuseOtherEncodings(manager);
    const executor = new MigrationExecutor(manager.dataSource, manager.queryRunner);
    const migrations = await executor.getPendingMigrations();
    if (migrations.length === manager.dataSource.migrations.length)
      await refuseOtherSchema(manager);
    return migrations;
  });
  if (pending.length === 0) return [];
  return inDatabase(config, limit, end, async (manager) => {
    await takeLock(manager, log);
    const executor = new MigrationExecutor(manager.dataSource, manager.queryRunner);
    // They run in the transaction that has begun.
    executor.transaction = 'none';
    const migrations = await executor.executePendingMigrations();
    return migrations.map(({ name }) => name);
  });
}

/**
 * Runs `work` in a transaction on a connection of its own.
 *
 * @param limit of each statement, in milliseconds. The wait for a lock is shorter: `config.timeout`. Until it ends, the locks
 *   that a migration has already hold up requests of other instances.
 * @param end ends the connection when it is aborted
 */
async function inDatabase<Result>(
  config: DatabaseConfig,
  limit: number,
  end: AbortSignal | undefined,
  work: (manager: EntityManager) => Promise<Result>,
): Promise<Result> {
  const options = databaseOptions(config, {
    statement: Math.ceil(limit),
    lock: Math.ceil(config.timeout * SERVER_PART),
  });
  const { onConnect, ...extra } = options.extra as PoolOptions;
  const clients: Client[] = [];
  const endConnections = () => {
    for (const { connection } of clients) connection.stream.destroy(new Error(READ_TIMEOUT));
  };
  end?.addEventListener('abort', endConnections);
  const dataSource = new DataSource({
    ...options,
    extra: {
      ...extra,
      query_timeout: Math.ceil(limit),
      onConnect: (client: Client) => {
        clients.push(client);
        if (end?.aborted === true) endConnections();
        return onConnect(client);
      },
    },
  });
  try {
    await dataSource.initialize();
    return await inTransaction(dataSource.createQueryRunner(), work);
  } finally {
    end?.removeEventListener('abort', endConnections);
    if (dataSource.isInitialized) await untilClosed(dataSource.destroy());
    // An open connection would keep a command from ending.
    for (const { connection } of clients) connection.stream.destroy();
  }
}

/** Not that of TypeORM, which sends no settings in the query that begins a transaction. */
async function inTransaction<Result>(
  queryRunner: QueryRunner,
  work: (manager: EntityManager) => Promise<Result>,
): Promise<Result> {
  const client = (await queryRunner.connect()) as Client;
  try {
    await queryRunner.query(beginOf(client));
    const result = await work(queryRunner.manager);
    await queryRunner.query('COMMIT');
    return result;
  } catch (error) {
    // If the connection is lost, the server rolls back by itself.
    await queryRunner.query('ROLLBACK').catch(() => undefined);
    throw error;
  } finally {
    await queryRunner.release();
  }
}

async function takeLock(manager: EntityManager, log: (message: string) => void): Promise<void> {
  // Without the savepoint, an error here would abort the whole transaction.
  await manager.query('SAVEPOINT before_lock');
  try {
    const [row] = await manager.query<{ locked: boolean }[]>(
      'SELECT pg_try_advisory_xact_lock($1) AS locked',
      [MIGRATION_LOCK],
    );
    if (row?.locked !== true) {
      throw new MigrationInProgressError('another process is bringing the schema up to date');
    }
  } catch (error) {
    if (!isUnsupported(error)) throw error;
    await manager.query('ROLLBACK TO SAVEPOINT before_lock');
    log(
      `The database has no advisory locks, so nothing keeps two migrations apart: run one at a time, before the instances start. It says: ${describeDatabaseError(error)}`,
    );
  }
}

/** Schemas other than the present one that have all tables of the service. */
const OTHER_SCHEMAS = `
  SELECT nspname AS other, current_schema() AS present FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
  WHERE relname IN ('plants', 'access_tokens', 'migrations') AND nspname <> current_schema()
    AND (SELECT source <> 'client' FROM pg_settings WHERE name = 'search_path')
  GROUP BY nspname HAVING count(*) = 3`;

/**
 * After a change of `search_path`, a start would make new tables: an id that belongs to a plant would be free. A
 * `search_path` in the address is meant.
 */
async function refuseOtherSchema(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ other: string; present: string }[]>(OTHER_SCHEMAS);
  if (row === undefined) return;
  throw new Error(
    `its search_path leads to the schema ${row.present}, but the tables of a Plant Store are in the schema ${row.other}. Set search_path to that one; for a second Plant Store, add ?options=-c%20search_path%3D${row.present} to DATABASE_URL`,
  );
}

/** A database with another encoding would refuse or change some names that are valid in UTF-8. */
async function refuseOtherEncodings(manager: EntityManager): Promise<void> {
  const [row] = await manager.query<{ server_encoding: string }[]>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8') {
    throw new Error(
      `it uses the encoding ${row?.server_encoding}. Create it with ENCODING 'UTF8'.`,
    );
  }
}
