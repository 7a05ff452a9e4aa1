// The settings of the server on which depends what a statement means, or whether an acknowledged plant outlives a crash.

import { escapeIdentifier, type Client, type ClientBase, type QueryConfig } from 'pg';
import { StartError } from '../errors/start-error.js';

/**
 * The part of `DATABASE_TIMEOUT_MS` after which the server ends a statement. It reports that before the time is up here, even
 * if this process is busy, so the connection can be used again. One that is given up instead lives on at the server for a while.
 */
const STATEMENT_PART = 0.8;

/** The part after which it ends a wait for a lock: a locked row holds up the other plants of its batch no longer. */
const LOCK_PART = 0.1;

/** Values that a database or a role could change with ALTER DATABASE or ALTER ROLE. Times are milliseconds. */
const settingsFor = (timeout: number): Readonly<Record<string, string>> => ({
  // With `off`, a crash loses plants that were acknowledged; with `local` and `remote_write`, a failover.
  synchronous_commit: 'on',
  // Only a warning says that somebody canceled the wait for a standby.
  client_min_messages: 'warning',
  // Otherwise, statements that run at the same time fail.
  default_transaction_isolation: 'read committed',
  // With `off`, a plant without a tag would get the tag "NULL".
  array_nulls: 'on',
  // A statement must not outlive the wait for it: its connection is replaced, and the server would have ever more.
  statement_timeout: String(Math.ceil(timeout * STATEMENT_PART)),
  lock_timeout: String(Math.ceil(timeout * LOCK_PART)),
});

/** Sets the settings if the session is that of the server's process $1; otherwise, it only reads them. */
export const SESSION_SETTINGS = `
  SELECT pg_backend_pid() = $1 AS "isOwn", session_user AS role, current_database() AS database, name,
    CASE WHEN pg_backend_pid() = $1 AND setting <> 'remote_apply' THEN set_config(name, value, false) ELSE setting END AS setting
  FROM pg_settings JOIN unnest($2::text[], $3::text[]) AS wanted (name, value) USING (name)`;

export interface SettingRow {
  readonly isOwn: boolean;
  readonly role: string;
  readonly database: string;
  readonly name: string;
  readonly setting: string;
}

/**
 * @param process of the server whose settings are set; null: they are only read
 * @returns the parameters of `SESSION_SETTINGS`
 */
export function sessionParameters(timeout: number, process: number | null = null): unknown[] {
  const settings = settingsFor(timeout);
  return [process, Object.keys(settings), Object.values(settings)];
}

/**
 * Sets up a new connection. A pooler such as PgBouncer reports a number of its own instead of that of the server's process, and may
 * give each transaction another session of the server: these must have the settings already.
 *
 * @param timeout the limit of a statement of a request, in milliseconds, which the sessions of a pooler have
 * @param ownTimeout that of the statements on this connection
 * @throws StartError behind a pooler whose sessions have other settings; or the error of the connection
 */
export async function beginSession(
  client: ClientBase,
  timeout: number,
  ownTimeout = timeout,
): Promise<void> {
  const { processID } = client as Client & { processID: number | null };
  const { rows } = await client.query<SettingRow>({
    text: SESSION_SETTINGS,
    values: sessionParameters(ownTimeout, processID),
    query_timeout: timeout,
  } as QueryConfig);
  if (rows[0]?.isOwn === true) return;
  const problem = sessionProblem(rows, timeout);
  if (problem !== undefined) throw new StartError(problem);
}

/** @returns what must be changed, with the statements that change it; undefined if the settings suit */
export function sessionProblem(rows: readonly SettingRow[], timeout: number): string | undefined {
  const wanted = settingsFor(timeout);
  const wrong = rows.filter(({ name, setting }) => !suits(name, setting, wanted[name]!));
  if (wrong.length === 0) return undefined;
  const names = wrong.map(({ name }) => name).join(', ');
  const remedies = wrong.map(({ role, database, name }) => {
    const target = `${escapeIdentifier(role)} IN DATABASE ${escapeIdentifier(database)}`;
    return `ALTER ROLE ${target} SET ${name} = '${wanted[name]}';`;
  });
  return `The role of the service needs other settings, because its sessions belong to a pooler: ${names}. Run ${remedies.join(' ')} then RECONNECT in PgBouncer, or restart the pooler.`;
}

/** Times need not be exact: instances with another `DATABASE_TIMEOUT_MS` may use the same role while it is changed. */
function suits(name: string, setting: string, wanted: string): boolean {
  if (name.endsWith('_timeout')) {
    return Number(setting) >= Number(wanted) / 4 && Number(setting) <= Number(wanted) * 1.25;
  }
  if (name === 'client_min_messages') return setting !== 'error';
  return setting === wanted || setting === 'remote_apply';
}
