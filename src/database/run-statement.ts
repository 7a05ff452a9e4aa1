import { hash } from 'node:crypto';
import { SpanKind } from '@opentelemetry/api';
import type { Pool, PoolClient, QueryConfig, QueryResult } from 'pg';
import type { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver.js';
import { ErrorCode } from '../errors/error-codes.js';
import { SEND_AGAIN, ServiceError } from '../errors/service-error.js';
import { inSpan } from '../tracing/tracing.js';
import {
  isCanceled,
  isPartUnavailable,
  isPreparedStatementLost,
  isRetryable,
  isUnavailable,
} from './postgres-errors.js';
import { beginOf, localSettingsOf } from './session.js';

/**
 * The server responds, but it cannot reach another server that has a part of the rows. Statements about other rows may
 * succeed.
 */
export class PartUnavailableError extends ServiceError {
  constructor(cause: unknown) {
    super(ErrorCode.databaseUnavailable, UNAVAILABLE_MESSAGE, { cause });
  }
}

const UNAVAILABLE_MESSAGE = `The database cannot be reached or does not respond in time. ${SEND_AGAIN}`;

/** A statement that lost this many races or connections will not succeed while its client waits. */
const MAX_ATTEMPTS = 5;

/**
 * Runs one statement that may safely be run again, on a connection of the pool.
 *
 * The statement goes to the pool itself and not through TypeORM's query runner: the pool closes nearly every connection
 * on which a statement failed. Such a connection may hang on a frozen server, lead to a former primary that is
 * read-only by now, or still wait for a result that nothing reads any more.
 *
 * @returns the result as pg gives it. Its row count is not reliable: Citus counts other rows.
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time;
 *   PartUnavailableError when that is true for a part of it
 */
export async function runStatement<Row extends object>(
  dataSource: DataSource,
  sql: string,
  parameters: readonly unknown[],
): Promise<QueryResult<Row>> {
  const pool = poolOf(dataSource);
  const statement = inSpan(
    'postgres',
    { kind: SpanKind.CLIENT, attributes: { 'db.query.text': sql } },
    () => query<Row>(pool, sql, [...parameters]),
  );
  try {
    return await withTimeout(statement, pool.options.query_timeout as number);
  } catch (error) {
    throw withoutDetails(error);
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
        throw withoutDetails(error);
      }
    };
    await run(beginOf(client), []);
    const result = await work(run);
    await run('COMMIT', []);
    return result;
  });
}

/** @returns the error for the client, if the database is unavailable */
function withoutDetails(error: unknown): unknown {
  if (isPartUnavailable(error)) return new PartUnavailableError(error);
  return isUnavailable(error) ? databaseUnavailable(error) : error;
}

/** Pools on which a prepared statement failed: no more statements are prepared for them. */
const poolsWithoutNames = new WeakSet<Pool>();

/**
 * Prepares a statement once for each connection: parsing and planning it again takes the server as long as running
 * it. Where that does not work, as behind a pooler that gives every transaction another connection, nothing is prepared
 * after the first failure.
 */
async function query<Row extends object>(
  pool: Pool,
  text: string,
  values: unknown[],
): Promise<QueryResult<Row>> {
  for (let attempt = 1; ; attempt++) {
    const name = poolsWithoutNames.has(pool) ? undefined : nameOf(text);
    try {
      return await queryReplicated<Row>(pool, { name, text, values });
    } catch (error) {
      if (name !== undefined && isPreparedStatementLost(error)) poolsWithoutNames.add(pool);
      else if (!isRetryable(error) || attempt >= MAX_ATTEMPTS) throw error;
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

/** Runs a statement in a transaction of its own. */
async function queryReplicated<Row extends object>(
  pool: Pool,
  statement: QueryConfig,
): Promise<QueryResult<Row>> {
  return withClient(
    pool,
    (client) => {
      return localSettingsOf(client) === undefined
        ? client.query<Row>(statement)
        : queryPooled<Row>(client, statement);
    },
    // The connection is good if its server reports that another server cannot be reached, or that the statement's time is up.
    (error) => isPartUnavailable(error) || isCanceled(error),
  );
}

/** All three are sent at once: behind a pooler, a statement takes no longer than without it. */
async function queryPooled<Row extends object>(
  client: PoolClient,
  statement: QueryConfig,
): Promise<QueryResult<Row>> {
  // Not for every connection to a pooler: such a one cannot run COPY.
  Object.assign(client, { pipeline: true });
  const begun = client.query(beginOf(client));
  const result = client.query<Row>(statement);
  const outcomes = await Promise.allSettled([begun, result, client.query('COMMIT')]);
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
  return result;
}

/**
 * Lends a connection, and succeeds only if each commit waited for the standbys. If an administrator cancels the wait, or its
 * time is up, Postgres commits on this server alone and reports success with a warning: this function throws an error instead.
 *
 * @param isGood whether the connection can be used again after this error
 * @throws ServiceError databaseUnavailable when the wait was canceled; or the error of the connection or of `run`
 */
async function withClient<Result>(
  pool: Pool,
  run: (client: PoolClient) => Promise<Result>,
  isGood: (error: unknown) => boolean = () => false,
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
    isUsable = isGood(error);
    throw error;
  } finally {
    client.off('notice', onNotice).off('error', onError);
    client.release(!isUsable);
  }
}

/** @throws an error that counts as an outage: without a connection, the database cannot be reached */
async function connect(pool: Pool): Promise<PoolClient> {
  try {
    return await pool.connect();
  } catch (error) {
    // Other errors are of TLS or of the login, such as a certificate that has expired since the start.
    throw isUnavailable(error) ? error : databaseUnavailable(error);
  }
}

const names = new Map<string, string>();

/**
 * A hash of the text, so that a name means the same statement in all versions of the service: a pooler may give one
 * connection to two of them.
 */
function nameOf(text: string): string {
  let name = names.get(text);
  if (name === undefined) {
    name = `plant_store_${hash('sha256', text).slice(0, 16)}`;
    names.set(text, name);
  }
  return name;
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

/** @param cause only for the log */
export function databaseUnavailable(cause?: unknown): ServiceError {
  return new ServiceError(ErrorCode.databaseUnavailable, UNAVAILABLE_MESSAGE, { cause });
}
