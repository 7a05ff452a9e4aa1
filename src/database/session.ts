import type { Client, ClientBase, QueryResultRow } from 'pg';
import { limited } from './limited.js';
import { isUnsupported } from './postgres-errors.js';

/** Time limits of the server, in milliseconds; 0 means without a limit. */
export interface TimeLimits {
  /** The limit of each statement. */
  readonly statement: number;
  /** The limit of each wait for a lock. */
  readonly lock: number;
}

/**
 * Settings that ALTER ROLE and ALTER DATABASE could give each session, and on which depends what a statement means or
 * whether it succeeds. All other settings change nothing, because no statement prints or parses a date, or has a NULL in an
 * array.
 */
const settingsOf = ({ statement, lock }: TimeLimits): Readonly<Record<string, string>> => ({
  // Only a warning says that somebody canceled the wait for a standby.
  client_min_messages: 'warning',
  // With `off`, a crash loses plants that were acknowledged; with `local` and `remote_write`, a failover.
  synchronous_commit: 'on',
  // Otherwise, statements that run at the same time fail.
  default_transaction_isolation: 'read committed',
  // A statement must not outlive the wait for it: its connection is replaced, and the server would have ever more.
  statement_timeout: String(statement),
  lock_timeout: String(lock),
  exit_on_error: 'off',
  transaction_timeout: '0',
  idle_session_timeout: '0',
  idle_in_transaction_session_timeout: '0',
});

/**
 * Leaves out what an older server does not know. `remote_apply` waits for more than `on`. Behind a pooler, nothing is set but
 * for this statement: other clients of the pooler may use the connection next.
 */
export const BEGIN_SESSION = `
  SELECT pg_backend_pid() = $3 AS "isOwn", name, set_config(name, value, pg_backend_pid() <> $3) AS value
  FROM (
    SELECT name, CASE WHEN name = 'synchronous_commit' AND current_setting(name) = 'remote_apply'
      THEN 'remote_apply' ELSE value END AS value
    FROM unnest($1::text[], $2::text[]) AS wanted (name, value)
    WHERE current_setting(name, true) IS NOT NULL
  ) AS settings`;

interface SettingRow extends QueryResultRow {
  readonly isOwn: boolean;
  readonly name: string;
  readonly value: string;
}

/** The connections to a pooler, each with the statements that set our settings for a transaction. */
const pooled = new WeakMap<ClientBase, string>();

/**
 * Makes statements on a new connection independent of the settings of the database and the role.
 *
 * @param timeout of this statement, in milliseconds; by default, it is that of the connection
 * @throws the error of the connection, which is then closed
 */
export async function beginSession(
  client: ClientBase,
  limits: TimeLimits,
  timeout?: number,
): Promise<void> {
  const { processID, connection } = client as Client & { processID: number | null };
  const settings = settingsOf(limits);
  try {
    const { rows } = await client.query<SettingRow>(
      limited(timeout, BEGIN_SESSION, [
        Object.keys(settings),
        Object.values(settings),
        processID ?? 0,
      ]),
    );
    // A pooler such as PgBouncer gives its clients numbers of its own.
    if (rows[0]?.isOwn !== false) return;
    pooled.set(client, rows.map(({ name, value }) => `SET LOCAL ${name} = '${value}'`).join('; '));
  } catch (error) {
    // A database that only speaks the protocol of Postgres may not have such settings.
    if (isUnsupported(error)) return;
    // A frozen server would never close its side, and the pool would wait for that.
    connection.stream.destroy();
    throw error;
  }
}

/**
 * Behind a pooler, each transaction may be in another session of the server.
 *
 * @returns the statements with which each transaction must begin; undefined if the session has our settings
 */
export function localSettingsOf(client: ClientBase): string | undefined {
  return pooled.get(client);
}

/** How a transaction begins in which every statement sees what is committed before it. */
const READ_COMMITTED = 'BEGIN ISOLATION LEVEL READ COMMITTED';

/**
 * @returns the statements that begin a transaction, for one query: between two, the database may end a transaction that is idle
 */
export function beginOf(client: ClientBase, begin = READ_COMMITTED): string {
  return [begin, localSettingsOf(client)].filter(Boolean).join('; ');
}
