import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { inSpan } from '../logging/tracing.js';
import { isRetryable, isUnavailable } from './postgres-errors.js';

/** A statement that loses a race this often will not win it within the time a client waits. */
const MAX_ATTEMPTS = 5;

/**
 * Runs one statement that may safely be run again, on a connection of the pool.
 *
 * It goes to the pool itself and not through TypeORM's query runner: the pool closes a connection on which
 * a statement failed. Such a connection may hang on a frozen server, lead to a former primary that is
 * read-only by now, or still wait for an answer that nobody reads any more.
 *
 * @returns the rows
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not answer in time
 */
export async function runStatement<Row extends object>(
  dataSource: DataSource,
  sql: string,
  parameters: readonly unknown[],
): Promise<Row[]> {
  const pool = poolOf(dataSource);
  for (let attempt = 1; ; attempt++) {
    try {
      const result = await inSpan('postgres', { 'db.query.text': sql }, () =>
        pool.query(sql, [...parameters]),
      );
      return result.rows as Row[];
    } catch (error) {
      if (isRetryable(error) && attempt < MAX_ATTEMPTS) continue;
      throw isUnavailable(error) ? databaseUnavailable(error) : error;
    }
  }
}

/** The connections that TypeORM holds. */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as PostgresDriver).master as Pool;
}

function databaseUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.databaseUnavailable,
    'The database cannot be reached or does not answer in time. Nothing is lost by sending the same plant again.',
    { cause },
  );
}
