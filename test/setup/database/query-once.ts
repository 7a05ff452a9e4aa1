import pg from 'pg';

/** Runs SQL on a connection of its own: who kills and restarts the server keeps none open. */
export async function queryOnce<Row extends pg.QueryResultRow>(
  url: string,
  sql: string,
  parameters?: unknown[],
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Row>(sql, parameters)).rows;
  } finally {
    await client.end();
  }
}
