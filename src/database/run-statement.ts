// Runs statements on a connection of the pool.

import { hash } from 'node:crypto';
import { SpanKind } from '@opentelemetry/api';
import type { Pool, PoolClient, QueryResult } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { RowsUnavailableError, databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { inSpan } from '../tracing/tracing.js';
import {
  isOfStatement,
  isPreparedStatementLost,
  isRetryable,
  mayReuseConnection,
  isUnavailable,
} from './postgres-errors.js';

/** A statement that each connection prepares once: to parse and plan it takes the server as long as to run it. */
export interface PreparedStatement {
  readonly name: string;
  readonly text: string;
}

/**
 * The name is a hash of the text, so that it means the same statement in all versions of the service: a pooler may give one
 * connection to two of them.
 */
export function prepared(text: string): PreparedStatement {
  return { name: `plant_store_${hash('sha256', text).slice(0, 16)}`, text };
}

/** A statement that lost this many races or connections will not succeed while its client waits. */
const MAX_ATTEMPTS = 5;

/**
 * Runs one statement that may safely be run again.
 *
 * It goes to the pool itself and not through TypeORM's query runner: the pool closes nearly every connection on which a
 * statement failed. Such a connection may hang on a frozen server, lead to a former primary that is read-only by now, or still
 * wait for a result that nothing reads any more.
 *
 * @returns the result as pg gives it. Its row count is not reliable: Citus counts other rows.
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time;
 *   RowsUnavailableError when that is true for these rows only
 */
export async function runStatement<Row extends object>(
  dataSource: DataSource,
  statement: PreparedStatement,
  parameters: readonly unknown[],
): Promise<QueryResult<Row>> {
  const pool = poolOf(dataSource);
  const timeout = pool.options.query_timeout as number;
  const result = inSpan(
    'postgres',
    { kind: SpanKind.CLIENT, attributes: { 'db.query.text': statement.text } },
    () => runAgain<Row>(pool, statement, [...parameters], performance.now() + timeout),
  );
  try {
    return await withTimeout(result, timeout);
  } catch (error) {
    throw errorForClient(error);
  }
}

/** Runs one statement of a transaction. */
export type RunInTransaction = <Row extends object>(
  sql: string,
  parameters: readonly unknown[],
) => Promise<QueryResult<Row>>;

/**
 * Runs a transaction. If `work` fails, nothing is changed.
 *
 * @param work runs the statements; each has a time limit, but not the transaction
 * @throws ServiceError databaseUnavailable as `runStatement`; or the error of `work`
 */
export function inTransaction<Result>(
  dataSource: DataSource,
  work: (run: RunInTransaction) => Promise<Result>,
): Promise<Result> {
  return withClient(poolOf(dataSource), async (client) => {
    const run: RunInTransaction = async <Row extends object>(
      text: string,
      values: readonly unknown[],
    ) => {
      try {
        return await client.query<Row>(text, [...values]);
      } catch (error) {
        throw errorForClient(error);
      }
    };
    await run('BEGIN', []);
    const result = await work(run);
    await run('COMMIT', []);
    return result;
  });
}

/** The pools behind which prepared statements are lost: PgBouncer keeps them since version 1.21. */
const poolsWithoutNames = new WeakSet<Pool>();

/** @param deadline after which no attempt begins, because the client has its response */
async function runAgain<Row extends object>(
  pool: Pool,
  { name, text }: PreparedStatement,
  values: unknown[],
  deadline: number,
): Promise<QueryResult<Row>> {
  for (let attempt = 1; ; attempt++) {
    const isNamed = !poolsWithoutNames.has(pool);
    const statement = isNamed ? { name, text, values } : { text, values };
    try {
      return await withClient(pool, (client) => client.query<Row>(statement), mayReuseConnection);
    } catch (error) {
      if (isNamed && isPreparedStatementLost(error)) poolsWithoutNames.add(pool);
      else if (!isRetryable(error) || attempt === MAX_ATTEMPTS) throw error;
      if (performance.now() >= deadline) throw error;
    }
  }
}

/**
 * The functions that warn of a canceled wait for standbys: the one of Postgres, and the one of a Citus coordinator that
 * forwards the warnings of its workers. They are compared by function because the text is translated.
 */
const REPORTS_CANCELED_WAIT = ['SyncRepWaitForLSN', 'DefaultCitusNoticeReceiver'];

/** SQLSTATE of a warning without a code of its own. */
const WARNING = '01000';

/**
 * Lends a connection, and succeeds only if each commit waited for the standbys. If an administrator cancels the wait, or its
 * time is up, Postgres commits on this server alone and reports success with a warning: this function throws an error instead.
 *
 * @param mayReuse whether the connection can be used again after this error
 * @throws ServiceError databaseUnavailable when no connection can be made, or the wait was canceled; or the error of `run`
 */
async function withClient<Result>(
  pool: Pool,
  run: (client: PoolClient) => Promise<Result>,
  mayReuse: (error: unknown) => boolean = () => false,
): Promise<Result> {
  const client = await connect(pool);
  let isReplicated = true;
  const onNotice = ({
    code,
    routine = '',
  }: {
    code?: string | undefined;
    routine?: string | undefined;
  }) => {
    if (code === WARNING && REPORTS_CANCELED_WAIT.includes(routine)) isReplicated = false;
  };
  // A lost connection is also reported as an event, which would end the process without a listener.
  const onError = () => undefined;
  client.on('notice', onNotice).on('error', onError);
  let isUsable = true;
  try {
    const result = await run(client);
    if (!isReplicated) throw databaseUnavailable(new Error('the wait for a standby was canceled'));
    return result;
  } catch (error) {
    isUsable = mayReuse(error);
    throw error;
  } finally {
    client.off('notice', onNotice).off('error', onError);
    client.release(!isUsable);
  }
}

async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    throw databaseUnavailable(error);
  }
}

/** @returns the error for the client, without details of the database */
function errorForClient(error: unknown): unknown {
  if (error instanceof ServiceError) return error;
  if (isOfStatement(error)) return new RowsUnavailableError(error);
  return isUnavailable(error) ? databaseUnavailable(error) : error;
}

/** One limit for the wait for a connection, the statement, and all its retries together. */
function withTimeout<Result>(statement: Promise<Result>, milliseconds: number): Promise<Result> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(databaseUnavailable(new Error('it did not respond in time')));
    }, milliseconds);
    statement.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The pool of pg inside TypeORM's data source. */
export function poolOf(dataSource: DataSource): Pool {
  return (dataSource.driver as PostgresDriver).master as Pool;
}
