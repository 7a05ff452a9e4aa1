import type { Client } from 'pg';
import type { DataSource, QueryRunner } from 'typeorm';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { isUnavailable } from './postgres-errors.js';

/**
 * Runs one statement on a connection of the pool.
 *
 * A connection on which a statement failed is closed, not reused: it may hang on a frozen server, lead
 * to a former primary that is read-only by now, or still wait for the answer nobody reads any more.
 *
 * @returns the rows
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not answer in time
 */
export async function runStatement<Row>(
  dataSource: DataSource,
  sql: string,
  parameters: readonly unknown[],
): Promise<Row[]> {
  const queryRunner = dataSource.createQueryRunner();
  try {
    return (await queryRunner.query(sql, [...parameters])) as Row[];
  } catch (error) {
    await closeConnection(queryRunner);
    throw isUnavailable(error) ? databaseUnavailable(error) : error;
  } finally {
    await queryRunner.release();
  }
}

export function databaseUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.databaseUnavailable,
    'The database cannot be reached or does not answer in time. Nothing is lost by sending the same plant again.',
    { cause },
  );
}

/** Ends the connection without waiting for the server; the pool then drops it on release. */
async function closeConnection(queryRunner: QueryRunner): Promise<void> {
  try {
    const client = (await queryRunner.connect()) as Client;
    client.end().catch(() => undefined);
  } catch {
    // There never was a connection.
  }
}
