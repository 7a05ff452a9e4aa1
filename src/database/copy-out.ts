// Reads many rows, as they were at one moment.

import { Pool, type PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DatabaseConfig } from '../config/config.js';
import { withClient } from './run-statement.js';
import { beginSession } from './session.js';

/**
 * Runs a statement `COPY … TO STDOUT`, which sees the rows that were committed when it began. It may take any time; but the waits
 * for a lock, and for the next rows of a database that is silent, end within `config.startTimeout`.
 *
 * @param write takes the data in the format of the statement; the database sends no more than it takes
 * @returns the number of rows
 * @throws ServiceError databaseUnavailable when no connection can be made; or the error of the database or of `write`; the reason of `signal`
 */
export async function copyOut(
  config: DatabaseConfig,
  sql: string,
  signal: AbortSignal,
  write: (chunk: Buffer) => Promise<void>,
): Promise<number> {
  const limit = Math.max(config.startTimeout, 2 * config.timeout);
  const pool = new Pool({
    connectionString: config.url,
    application_name: 'plant-store',
    connectionTimeoutMillis: config.timeout,
    keepAlive: true,
  });
  try {
    return await withClient(pool, async (client) => {
      await beginSession(client, config.timeout);
      // A reader that takes nothing more must not hold up the end.
      return Promise.race([copy(client, sql, limit, write), untilAborted(signal)]);
    });
  } finally {
    await pool.end();
  }
}

async function copy(
  client: PoolClient,
  sql: string,
  limit: number,
  write: (chunk: Buffer) => Promise<void>,
): Promise<number> {
  const limitSilence = () => setTimeout(() => void client.end(), limit);
  let timer = limitSilence();
  try {
    // Behind a pooler, only a transaction can have settings of its own.
    await client.query(
      `BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = ${Math.ceil(limit / 2)}`,
    );
    const stream = client.query(copyTo(sql));
    // The end of the connection is also an error of a stream whose reader has gone.
    stream.on('error', () => undefined);
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      clearTimeout(timer);
      await write(chunk);
      timer = limitSilence();
    }
    await client.query('COMMIT');
    return stream.rowCount;
  } finally {
    clearTimeout(timer);
  }
}

/** @throws the reason of the signal */
function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
  });
}
