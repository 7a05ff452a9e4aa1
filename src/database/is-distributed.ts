import type { DataSource } from 'typeorm';
import { runStatement } from './run-statement.js';

/** The list of distributed tables, which only the extension Citus has. */
const FIND_LIST = `SELECT to_regclass('pg_dist_partition') IS NOT NULL AS "isThere"`;

/** Finds a distributed table in this list. The method 'n' stands for a table that has all its rows in one place. */
export const FIND_TABLE = `
  SELECT 1 FROM pg_dist_partition
  WHERE logicalrelid = to_regclass($1) AND partmethod <> 'n'`;

/**
 * Looks whether Citus distributes the rows of a table over several servers.
 *
 * @returns false on every other database, also on one that distributes all tables by itself
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time
 */
export async function isDistributed(dataSource: DataSource, table: string): Promise<boolean> {
  // A statement that reads a missing table would fail, and the server would log an error.
  const list = await runStatement<{ isThere: boolean }>(dataSource, FIND_LIST, []);
  if (list.rows[0]?.isThere !== true) return false;
  const { rows } = await runStatement(dataSource, FIND_TABLE, [table]);
  return rows.length > 0;
}
