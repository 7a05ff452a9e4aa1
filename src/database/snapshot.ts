import type { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DatabaseConfig } from '../config/config.js';
import { withConnection } from './connection.js';
import { limited } from './limited.js';
import { isCancelled, READ_TIMEOUT } from './postgres-errors.js';
import { beginOf } from './session.js';

/** The rows that were committed when it was opened. Rows that are written later are not in it. */
export interface Snapshot {
  /**
   * @returns undefined if counting takes too long
   * @throws the error of the database
   */
  count(table: string): Promise<number | undefined>;
  /**
   * Runs a statement `COPY … TO STDOUT`.
   *
   * @returns the data in the format of the statement; the database sends no more than the reader takes
   * @throws Error when the database is silent while the reader waits
   */
  copy(sql: string): AsyncIterable<Buffer>;
}

/**
 * Reads many rows of the database without a limit of time, while other processes write. The waits for a lock, for the
 * number of rows, and for the next rows of a database that is silent end within `config.startTimeout`.
 *
 * On Citus, each server has a snapshot of its own, and they differ by the moments that it takes to open them.
 *
 * @throws the error of the connection, of the database or of `action`
 */
export async function withSnapshot(
  config: DatabaseConfig,
  action: (snapshot: Snapshot) => Promise<void>,
): Promise<void> {
  const limit = Math.max(config.startTimeout, 2 * config.timeout);
  const limitOfServer = Math.ceil(limit / 2);
  await withConnection(config, { statement: 0, lock: limitOfServer }, async (client) => {
    const run = (text: string) => client.query(limited(config.timeout, text));
    await run(beginOf(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'));
    await action({
      async count(table) {
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
    if (isCancelled(error)) return undefined;
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
