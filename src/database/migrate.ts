import { DataSource, MigrationExecutor, type QueryRunner } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { migrationDatabaseOptions } from './database-options.js';

/** Any constant will do; every process that migrates this schema must use the same one. */
const MIGRATION_LOCK = 0x706c616e74;

/** The database cannot hold every name. */
export class DatabaseEncodingError extends Error {
  override readonly name = 'DatabaseEncodingError';
}

/** Another process is bringing the schema up to date right now. */
export class MigrationInProgressError extends Error {
  override readonly name = 'MigrationInProgressError';
}

/**
 * Brings the schema up to date: every pending migration, in one transaction.
 *
 * Several processes may call this at once: one of them migrates, and the others are told to come back. The
 * lock is held by the transaction and not by the session, so it also holds behind PgBouncer in transaction
 * mode.
 *
 * @returns the names of the migrations that ran
 * @throws MigrationInProgressError, DatabaseEncodingError, or the error of the connection or the statement
 */
export async function migrate(config: DatabaseConfig): Promise<string[]> {
  const dataSource = await new DataSource(migrationDatabaseOptions(config)).initialize();
  const queryRunner = dataSource.createQueryRunner();
  try {
    await refuseOtherEncodings(queryRunner);
    const executor = new MigrationExecutor(dataSource, queryRunner);
    const pending = await executor.getPendingMigrations();
    if (pending.length === 0) return [];
    await queryRunner.startTransaction();
    await takeLock(queryRunner);
    const migrations = await executor.executePendingMigrations();
    await queryRunner.commitTransaction();
    return migrations.map((migration) => migration.name);
  } finally {
    if (queryRunner.isTransactionActive) {
      await queryRunner.rollbackTransaction().catch(() => undefined);
    }
    await queryRunner.release();
    await dataSource.destroy();
  }
}

async function takeLock(queryRunner: QueryRunner): Promise<void> {
  const [row] = (await queryRunner.query('SELECT pg_try_advisory_xact_lock($1) AS locked', [
    MIGRATION_LOCK,
  ])) as { locked: boolean }[];
  if (row?.locked !== true) {
    throw new MigrationInProgressError('another process is bringing the schema up to date');
  }
}

/** Any other encoding would refuse or repair names that UTF-8 can hold. */
async function refuseOtherEncodings(queryRunner: QueryRunner): Promise<void> {
  const [row] = (await queryRunner.query('SHOW server_encoding')) as { server_encoding: string }[];
  if (row?.server_encoding !== 'UTF8') {
    throw new DatabaseEncodingError(
      `it uses the encoding ${row?.server_encoding}. Create it with ENCODING 'UTF8'.`,
    );
  }
}
