import { setTimeout as delay } from 'node:timers/promises';
import { parse } from 'pg-connection-string';
import { DataSource, MigrationExecutor, type EntityManager } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { databaseOptions } from './database-options.js';
import {
  describeDatabaseError,
  isMisconfigured,
  isUnavailable,
  isUnsupported,
} from './postgres-errors.js';
import { serversOf } from './primary-client.js';

const RETRY_INTERVAL_MS = 1000;

/** How often the same reason for the wait is logged. */
const LOG_INTERVAL_MS = 30_000;

/** Any number, as long as all processes that migrate this schema use the same one. */
const MIGRATION_LOCK = 0x706c616e74;

/** Another process is bringing the schema up to date right now. */
class MigrationInProgressError extends Error {}

/**
 * Brings the schema up to date, and waits for a database that cannot be reached yet.
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
    try {
      await migrate(config, log);
      return;
    } catch (error) {
      const reason = describeDatabaseError(error);
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
function addressOf({ url, isEmbedded, dataDir }: DatabaseConfig): string {
  // Not the path of the socket: for a command it is temporary, and is gone when the operator looks.
  if (isEmbedded === true) return dataDir;
  const { database, user } = parse(url);
  const servers = serversOf(url).map(({ host, port }) => `${host}:${port}`);
  return `${servers.join(',')}/${database ?? user ?? ''}`;
}

/**
 * Runs every pending migration, in one transaction.
 *
 * If several processes call this at once, one migrates; the others get a MigrationInProgressError and must call again.
 * The lock is held by the transaction and not by the session, so it also holds behind PgBouncer in transaction
 * mode. Where the database has no such lock, there is only a warning.
 *
 * @param log receives this warning
 * @returns the names of the migrations that ran
 * @throws MigrationInProgressError, or the reason why the database cannot be used
 */
export async function migrate(
  config: DatabaseConfig,
  log: (message: string) => void,
): Promise<string[]> {
  const dataSource = await new DataSource(databaseOptions(config)).initialize();
  try {
    await refuseOtherEncodings(dataSource);
    const pending = await new MigrationExecutor(dataSource).getPendingMigrations();
    if (pending.length === 0) return [];
    return await dataSource.transaction(async (manager) => {
      await takeLock(manager, log);
      const executor = new MigrationExecutor(dataSource, manager.queryRunner);
      const migrations = await executor.executePendingMigrations();
      return migrations.map(({ name }) => name);
    });
  } finally {
    await dataSource.destroy();
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

/** A database with another encoding would refuse or change some names that are valid in UTF-8. */
async function refuseOtherEncodings(dataSource: DataSource): Promise<void> {
  const [row] = await dataSource.query<{ server_encoding: string }[]>('SHOW server_encoding');
  if (row?.server_encoding !== 'UTF8') {
    throw new Error(
      `it uses the encoding ${row?.server_encoding}. Create it with ENCODING 'UTF8'.`,
    );
  }
}
