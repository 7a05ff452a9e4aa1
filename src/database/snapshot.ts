import type { PoolClient } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import { DataSource } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { databaseOptions } from './database-options.js';
import { poolOf } from './run-statement.js';

/** The rows that were committed when it was opened. Rows that are written later are not in it. */
export interface Snapshot {
  /** @throws the error of the database */
  count(table: string): Promise<number>;
  /**
   * Runs a statement `COPY … TO STDOUT`.
   *
   * @returns the data in the format of the statement; the database sends no more than the reader takes
   */
  copy(sql: string): AsyncIterable<Buffer>;
}

/** A role or a database may limit the time of statements for the sake of requests, which are short. */
const WITHOUT_LIMITS = `
  SELECT set_config(name, '0', true) FROM pg_settings
  WHERE name IN ('statement_timeout', 'transaction_timeout', 'idle_in_transaction_session_timeout')`;

/**
 * Reads many rows of the database without a limit of time, while other processes write.
 *
 * On Citus, each server has a snapshot of its own, and they differ by the moments that it takes to open them.
 *
 * @throws the error of the connection, of the database or of `action`
 */
export async function withSnapshot(
  config: DatabaseConfig,
  action: (snapshot: Snapshot) => Promise<void>,
): Promise<void> {
  const options = databaseOptions(config);
  const dataSource = await new DataSource({
    ...options,
    extra: { ...(options.extra as object), keepAlive: true },
  }).initialize();
  try {
    const client = await poolOf(dataSource).connect();
    let failure: Error | undefined;
    // Without a listener, the event of a lost connection would end the process.
    client.on('error', (error: Error) => (failure = error));
    try {
      await client.query('BEGIN TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY');
      await client.query(WITHOUT_LIMITS);
      await action(snapshotOn(client));
      const { command } = await client.query('COMMIT');
      // The response to a COMMIT after a statement that failed.
      if (command !== 'COMMIT') throw new Error('the transaction was rolled back');
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      // The connection is closed if its data was not read to the end.
      client.release(failure);
    }
  } finally {
    await dataSource.destroy();
  }
}

function snapshotOn(client: PoolClient): Snapshot {
  return {
    async count(table) {
      const sql = `SELECT count(*) AS count FROM ${table}`;
      const { rows } = await client.query<{ count: string }>(sql);
      return Number(rows[0]!.count);
    },
    copy(sql) {
      const stream = client.query(copyTo(sql));
      // The end of the connection is also an error of a stream whose reader has gone.
      stream.on('error', () => undefined);
      return stream;
    },
  };
}
