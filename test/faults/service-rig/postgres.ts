import pg from 'pg';
import type { PostgresServer } from '../../setup/database/postgres-server.js';
import { waitFor } from '../wait-for.js';

/** A Postgres that is disturbed. */
export interface FaultServer extends Pick<
  PostgresServer,
  'url' | 'query' | 'administer' | 'kill' | 'freeze' | 'thaw'
> {
  /** Whether it is started again with its service when it has ended. */
  readonly restartsItself: boolean;
  /** Starts it again; does nothing if that happens with its service. */
  start(): Promise<void>;
}

const RESTART_SECONDS = 60;

/** How often Postgres is made to need another file for its log, for which it finds no place. */
const LOG_SWITCHES = 10;

/** Makes Postgres ask for a file that it cannot have, after which it ends. */
export async function fillLog(server: FaultServer): Promise<void> {
  const sql = "SELECT pg_logical_emit_message(true, '', ''), pg_switch_wal()";
  try {
    for (let count = 0; count < LOG_SWITCHES; count++) await server.administer(sql);
  } catch {
    // The disk is full, or Postgres has ended.
  }
}

/**
 * Starts Postgres if it has ended, and otherwise waits until it has recovered.
 *
 * @returns whether it had to be started
 */
export async function restart(server: FaultServer, signal: AbortSignal): Promise<boolean> {
  let isStarted = false;
  await waitFor('The recovery of Postgres', RESTART_SECONDS, signal, async () => {
    try {
      await server.query('SELECT 1');
      return true;
    } catch (error) {
      if ((error as { code?: string }).code === 'ECONNREFUSED' && !server.restartsItself) {
        await server.start();
        isStarted = true;
      }
      return false;
    }
  });
  return isStarted;
}

/** Connects until the server refuses, and ends the connections of the service until it has none. */
export async function takeConnections(
  server: FaultServer,
  signal: AbortSignal,
): Promise<pg.Client[]> {
  const takers = [await connect(server)];
  await waitFor('Taking all connections', RESTART_SECONDS, signal, async () => {
    const { rowCount } = await takers[0]!.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'plant-store'",
    );
    try {
      for (;;) takers.push(await connect(server));
    } catch (error) {
      if (!String((error as { code?: string }).code).startsWith('53')) throw error;
    }
    return rowCount === 0;
  });
  return takers;
}

export async function connect({ url }: FaultServer): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  // A lost connection is also reported as an event, which would end the process without a listener.
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
