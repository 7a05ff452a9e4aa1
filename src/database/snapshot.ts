import type { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DatabaseConfig } from '../config/config.js';
import { withConnection } from './connection.js';
import { limited } from './limited.js';
import { READ_TIMEOUT } from './postgres-errors.js';
import { beginOf, type TimeLimits } from './session.js';
import { FIND_LIST, FIND_TABLE } from './shards.js';

/**
 * Runs a statement `COPY … TO STDOUT` on the rows of a table that were committed when it began, while other processes write. It may
 * take any time; but the waits for a lock, and for the next rows of a database that is silent, end within `config.startTimeout`.
 *
 * @param write takes the data in the format of the statement; the database sends no more than it takes
 * @returns the number of rows
 * @throws the error of the connection, of the database or of `write`; the reason of `signal`
 */
export async function copyOut(
  config: DatabaseConfig,
  table: string,
  sql: string,
  signal: AbortSignal,
  write: (chunk: Buffer) => Promise<void>,
): Promise<number> {
  const limit = Math.max(config.startTimeout, 2 * config.timeout);
  const limits = { statement: 0, lock: Math.ceil(limit / 2) };
  let rows = 0;
  await withConnection(config, limits, async (client) => {
    const run = (text: string) => client.query(limited(config.timeout, text));
    const isDistributed = await isOnSeveralServers(client, config.timeout, table);
    await run(beginOf(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY'));
    if (isDistributed) await openOnAllServers(client, config, limits, table);
    const stream = client.query(copyTo(sql));
    // The end of the connection is also an error of a stream whose reader has gone.
    stream.on('error', () => undefined);
    const chunks = stream[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
    for (;;) {
      const next = await within(limit, chunks.next(), signal);
      if (next.done === true) break;
      await within(undefined, write(next.value), signal);
    }
    const { command } = await run('COMMIT');
    // The response to a COMMIT after a statement that failed.
    if (command !== 'COMMIT') throw new Error('the transaction was rolled back');
    rows = stream.rowCount;
  });
  return rows;
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

/** @throws Error when the database is silent for too long; the reason of `signal` */
async function within<Result>(
  milliseconds: number | undefined,
  result: Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const timer =
    milliseconds === undefined
      ? undefined
      : setTimeout(() => reject(new Error(READ_TIMEOUT)), milliseconds);
  const abort = () => reject(signal.reason as Error);
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort);
  try {
    return await Promise.race([result, ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', abort);
  }
}
