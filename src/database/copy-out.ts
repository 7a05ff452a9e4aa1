// Reads many rows; on one server, as they were at one moment.

import { Client } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { DatabaseConfig } from '../config/config.js';
import { beginSession } from './session.js';

/**
 * Runs a statement `COPY … TO STDOUT`, which sees the rows that were committed when it began. It may take any time; but the waits
 * for a lock, and for the next rows of a database that is silent, end within `config.startTimeout`.
 *
 * @param write takes the data in the format of the statement; the database sends no more than it takes
 * @returns the number of rows
 * @throws the error of the connection, of the database or of `write`; the reason of `signal`
 */
export async function copyOut(
  config: DatabaseConfig,
  sql: string,
  signal: AbortSignal,
  write: (chunk: Buffer) => Promise<void>,
): Promise<number> {
  const limit = Math.max(config.startTimeout, 2 * config.timeout);
  const client = new Client({
    connectionString: config.url,
    application_name: 'plant-store',
    connectionTimeoutMillis: config.timeout,
    keepAlive: true,
  });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  try {
    await client.connect();
    await beginSession(client, config.timeout);
    // A reader that takes nothing more must not hold up the end.
    return await Promise.race([copy(client, sql, limit, write), untilAborted(signal)]);
  } finally {
    // Not awaited: a frozen server never closes its side.
    void client.end();
  }
}

async function copy(
  client: Client,
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
