import { hash } from 'node:crypto';
import type { Pool, QueryResult } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { inSpan } from '../tracing/tracing.js';
import {
  isPreparedStatementLost,
  isRetryable,
  isUnavailable,
  StatementTimeoutError,
} from './postgres-errors.js';

/** A statement that lost a race or its connection this often will not get through while its client waits. */
const MAX_ATTEMPTS = 5;

/**
 * Runs one statement that may safely be run again, on a connection of the pool.
 *
 * It goes to the pool itself and not through TypeORM's query runner: the pool closes a connection on which
 * a statement failed. Such a connection may hang on a frozen server, lead to a former primary that is
 * read-only by now, or still wait for a result that nothing reads any more.
 *
 * @returns the rows, and how many the statement wrote
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not answer in time
 */
export async function runStatement<Row extends object>(
  dataSource: DataSource,
  sql: string,
  parameters: readonly unknown[],
): Promise<QueryResult<Row>> {
  const pool = poolOf(dataSource);
  const statement = inSpan('postgres', { 'db.query.text': sql }, () =>
    withRetries(() => query<Row>(pool, sql, [...parameters])),
  );
  try {
    return await withTimeout(statement, pool.options.query_timeout as number);
  } catch (error) {
    throw isUnavailable(error) ? databaseUnavailable(error) : error;
  }
}

/** Pools behind which no statement stays prepared. */
const poolsWithoutNames = new WeakSet<Pool>();

/**
 * Prepares a statement once for each connection: to parse and plan it again takes the server as long as to carry
 * it out. Where that does not work, as behind a pooler that gives every transaction another connection, or with
 * the embedded Postgres, nothing is prepared from the first failure on.
 */
async function query<Row extends object>(
  pool: Pool,
  text: string,
  values: unknown[],
): Promise<QueryResult<Row>> {
  if (poolsWithoutNames.has(pool)) return pool.query(text, values);
  try {
    return await pool.query({ name: nameOf(text), text, values });
  } catch (error) {
    if (!isPreparedStatementLost(error)) throw error;
    poolsWithoutNames.add(pool);
    return pool.query(text, values);
  }
}

const names = new Map<string, string>();

/** The same for the same text in every version of the service: a pooler may hand a name on from one to another. */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `plant_store_${hash('sha256', text).slice(0, 16)}`;
    names.set(text, name);
  }
  return name;
}

async function withRetries<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (!isRetryable(error) || attempt >= MAX_ATTEMPTS) throw error;
    }
  }
}

/** One end for the wait for a connection, the statement, and all its retries together. */
function withTimeout<Result>(statement: Promise<Result>, milliseconds: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new StatementTimeoutError()), milliseconds);
    statement.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The connections that TypeORM holds. */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as PostgresDriver).master as Pool;
}

function databaseUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.databaseUnavailable,
    'The database cannot be reached or does not answer in time. Send the request again in a moment.',
    { cause },
  );
}
