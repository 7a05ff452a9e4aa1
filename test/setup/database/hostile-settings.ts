import type pg from 'pg';

type Query = (sql: string) => Promise<pg.QueryResultRow[]>;

/** Values that are hostile, but do not keep a session from beginning. Every other switch has the value that is not its default. */
const HOSTILE: Readonly<Record<string, string>> = {
  client_encoding: 'LATIN1',
  client_min_messages: 'error',
  commit_delay: '1000',
  datestyle: 'SQL, DMY',
  default_transaction_isolation: 'serializable',
  extra_float_digits: '-15',
  idle_in_transaction_session_timeout: '5s',
  // Longer than a busy process takes from its connection to its first statement.
  idle_session_timeout: '2s',
  intervalstyle: 'sql_standard',
  lock_timeout: '1ms',
  log_parameter_max_length_on_error: '-1',
  max_stack_depth: '100kB',
  plan_cache_mode: 'force_custom_plan',
  search_path: 'nowhere, public',
  statement_timeout: '300ms',
  synchronous_commit: 'off',
  timezone: 'Pacific/Kiritimati',
  transaction_timeout: '5s',
  work_mem: '64kB',
};

/**
 * What this does not change: `default_transaction_read_only`, with which the service is not ready, as its documentation says;
 * `session_replication_role`, without which the triggers of tests do not run; `temp_file_limit`, which makes Postgres refuse the
 * migrations when it uses parallel workers; and what tests see of the server.
 */
const UNCHANGED =
  /^(default_transaction_read_only|session_replication_role|transaction_|debug_|log_|trace_|track_|jit_)/;

const SWITCHES = `
  SELECT name, value FROM pg_settings,
    unnest(CASE vartype WHEN 'bool' THEN '{on,off}' ELSE enumvals END) WITH ORDINALITY AS other (value, place)
  WHERE context IN ('user', 'superuser') AND vartype IN ('bool', 'enum') AND value <> boot_val
  ORDER BY place DESC`;

/** @returns the statements that give all later sessions of `target`, such as a database, hostile settings */
export async function makeHostile(query: Query, target: string): Promise<void> {
  const known = await query('SELECT lower(name) AS name FROM pg_settings');
  const names = new Set(known.map(({ name }) => name as string));
  const switches = (await query(SWITCHES)) as { name: string; value: string }[];
  const settings = new Map([
    ...switches
      .filter(({ name }) => !UNCHANGED.test(name))
      .map(({ name, value }) => [name.toLowerCase(), value] as const),
    ...Object.entries(HOSTILE).filter(([name]) => names.has(name)),
  ]);
  const statements = [...settings].map(([name, value]) => {
    const list = value.split(', ').map((word) => `'${word}'`);
    return `ALTER ${target} SET ${name} = ${list.join(', ')}`;
  });
  await query(statements.join('; '));
}

let isHostile = false;

/** Every database that the test file opens from now on gives its sessions hostile settings. */
export function useHostileSettings(): void {
  isHostile = true;
}

/** Calls `makeHostile` if the test file uses hostile settings. */
export async function makeHostileIfUsed(query: Query, target: string): Promise<void> {
  if (isHostile) await makeHostile(query, target);
}
