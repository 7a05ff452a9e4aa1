import type { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DatabaseConfig } from '../config/config.js';
import { withConnection } from './connection.js';
import { limited } from './limited.js';
import { isCanceled, READ_TIMEOUT } from './postgres-errors.js';
import { beginOf, type TimeLimits } from './session.js';
import { FIND_LIST, FIND_TABLE } from './shards.js';

/** The rows of a table that were committed when it was opened. Rows that are written later are not in it. */
export interface Snapshot {
  /**
   * @returns the number of rows; undefined if counting takes too long
   * @throws the error of the database
   */
  count(): Promise<number | undefined>;
  /**
   * Runs a statement `COPY … TO STDOUT`.
   *
   * @returns the data in the format of the statement; the database sends no more than the reader takes
   * @throws Error when the database is silent while the reader waits
   */
  copy(sql: string): AsyncIterable<Buffer>;
}

/**
 * Reads a table without a limit of time, while other processes write. The waits for a lock, for the number of rows, and
 * for the next rows of a database that is silent end within `config.startTimeout`.
 *
 * @throws the error of the connection, of the database or of `action`
 */
export async function withSnapshot(
  config: DatabaseConfig,
  table: string,
  action: (snapshot: Snapshot) => Promise<void>,
): Promise<void> {
  const limit = Math.max(config.startTimeout, 2 * config.timeout);
  const limitOfServer = Math.ceil(limit / 2);
  const limits = { statement: 0, lock: limitOfServer };
  await withConnection(config, limits, async (client) => {
    const run = (text: string) => client.query(limited(config.timeout, text));
    const isDistributed = await isOnSeveralServers(client, config.timeout, table);
    await run(beginOf(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'));
    if (isDistributed) await openOnAllServers(client, config, limits, table);
    await action({
      async count() {
        await run(`SAVEPOINT before_count; SET LOCAL statement_timeout = ${limitOfServer}`);
        const total = await countRows(client, table, limit);
        await run('ROLLBACK TO SAVEPOINT before_count');
        return total;
      },
      copy: (sql) => copy(client, sql, limit),
    });
    const { command } = await run('COMMIT');
    // The response to a COMMIT after a statement that failed.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back');
  });
}

/** Whether Citus distributes the rows of the table. */
async function isOnSeveralServers(
  client: Client,
  timeout: number,
  table: string,
): Promise<boolean> {
  const run = (text: string, values?: string[]) => client.query(limited(timeout, text, values));
  await run(beginOf(client));
  const { rows } = (await run(FIND_LIST)) as { rows: { isThere: boolean }[] };
  const isDistributed =
    rows[0]?.isThere === true && (await run(FIND_TABLE, [table])).rows.length > 0;
  await run('COMMIT');
  return isDistributed;
}

/**
 * On Citus, each connection between two servers opens a snapshot of its own. Between the first and the last one, a row that
 * they miss could be acknowledged before a row that they have. So there is one to each server, and writers wait for a moment.
 * Citus asks no server for a row of `LIMIT 0`.
 *
 * @param client has begun the transaction of the snapshot
 */
async function openOnAllServers(
  client: Client,
  config: DatabaseConfig,
  limits: TimeLimits,
  table: string,
): Promise<void> {
  await withConnection(config, limits, async (lock) => {
    const limit = config.timeout + limits.lock;
    await lock.query(limited(limit, `${beginOf(lock)}; LOCK TABLE ${table} IN SHARE MODE`));
    await client.query(
      limited(
        limit,
        `SET LOCAL citus.max_adaptive_executor_pool_size = 1; SELECT 1 FROM ${table} LIMIT 1`,
      ),
    );
    await lock.query(limited(config.timeout, 'COMMIT'));
  });
}

async function countRows(
  client: Client,
  table: string,
  limit: number,
): Promise<number | undefined> {
  try {
    const { rows } = await client.query<{ count: string }>(
      limited(limit, `SELECT count(*) AS count FROM ${table}`),
    );
    return Number(rows[0]!.count);
  } catch (error) {
    if (isCanceled(error)) return undefined;
    throw error;
  }
}

async function* copy(client: Client, sql: string, limit: number): AsyncGenerator<Buffer> {
  const stream = client.query(copyTo(sql));
  // The end of the connection is also an error of a stream whose reader has gone.
  stream.on('error', () => undefined);
  const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  for (;;) {
    const next = await within(limit, chunks.next());
    if (next.done === true) return;
    yield next.value;
  }
}

async function within<Result>(milliseconds: number, result: Promise<Result>): Promise<Result> {
  const { promise: silence, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(READ_TIMEOUT)), milliseconds);
  try {
    return await Promise.race([result, silence]);
  } finally {
    clearTimeout(timer);
  }
}
