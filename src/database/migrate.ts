import { DataSource, MigrationExecutor, type QueryRunner } from 'typeorm';
import { migrationDatabaseOptions, type DatabaseConfig } from './database-options.js';

/** Any constant will do; every process that migrates this schema must use the same one. */
const MIGRATION_LOCK = 0x706c616e74;

/** The database cannot hold every name. */
export class DatabaseEncodingError extends Error {
  override readonly name = 'DatabaseEncodingError';
}

/**
 * Brings the schema up to date: every pending migration, in one transaction.
 *
 * Several processes may call this at once. The lock is held by the transaction and not by the session,
 * so it also holds behind PgBouncer in transaction mode; whoever comes later waits, then finds nothing
 * to do.
 *
 * @returns the names of the migrations that ran
 * @throws DatabaseEncodingError, or the error of the connection or the statement
 */
export async function migrate(config: DatabaseConfig): Promise<string[]> {
  const dataSource = await new DataSource(migrationDatabaseOptions(config)).initialize();
  try {
    const queryRunner = dataSource.createQueryRunner();
    try {
      await refuseOtherEncodings(queryRunner);
      await queryRunner.startTransaction();
      await queryRunner.query('SELECT pg_advisory_xact_lock($1)', [MIGRATION_LOCK]);
      const migrations = await new MigrationExecutor(
        dataSource,
        queryRunner,
      ).executePendingMigrations();
      await queryRunner.commitTransaction();
      return migrations.map((migration) => migration.name);
    } catch (error) {
      await queryRunner.rollbackTransaction().catch(() => undefined);
      throw error;
    } finally {
      await queryRunner.release();
    }
  } finally {
    await dataSource.destroy();
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
