import pg from 'pg';

/** On a busy machine, the timeouts of hostile settings are too short, also between the connection and its statement. */
const WITHOUT_TIMEOUTS = '-c idle_session_timeout=0 -c statement_timeout=0';

/** Runs SQL on a connection of its own, so that none is open when a test kills or restarts the server. */
export async function queryOnce<Row extends pg.QueryResultRow>(
  url: string,
  sql: string,
  parameters?: unknown[],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, options: WITHOUT_TIMEOUTS });
  await client.connect();
  try {
    return (await client.query<Row>(sql, parameters)).rows;
  } finally {
    await client.end();
  }
}
