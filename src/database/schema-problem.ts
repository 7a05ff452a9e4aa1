import type { DataSource, EntityTarget } from 'typeorm';
import { isTableMissing } from './postgres-errors.js';
import { runStatement } from './run-statement.js';

/** What a request does with a table. */
export interface NeededPrivilege {
  readonly entity: EntityTarget<object>;
  readonly privilege: 'SELECT' | 'INSERT';
}

interface SchemaRow {
  readonly isReadOnly: boolean;
  readonly isCurrent: boolean;
  readonly missing: string[];
  readonly forbidden: string[];
}

/**
 * One statement for all of it. Tables are looked up by name, because a statement that reads a missing table fails
 * as a whole; a privilege on some columns is enough, because a role may be given no more than those that are used.
 */
const LOOK = `
  WITH needed AS (
    SELECT DISTINCT name, privilege, to_regclass(name)::oid AS oid
    FROM unnest($2::text[], $3::text[]) AS needed (name, privilege)
  )
  SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    EXISTS (SELECT 1 FROM migrations WHERE name = $1) AS "isCurrent",
    ARRAY(SELECT DISTINCT name FROM needed WHERE oid IS NULL ORDER BY name) AS missing,
    ARRAY(
      SELECT privilege || ' on ' || name FROM needed
      WHERE NOT has_any_column_privilege(oid, privilege) ORDER BY 1
    ) AS forbidden`;

/**
 * What keeps the database from serving requests: one sentence, or undefined. Newer migrations than ours may have
 * run, too: see docs/operations.md.
 *
 * @param needed what the service cannot do without
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not answer in time
 */
export async function schemaProblem(
  dataSource: DataSource,
  needed: readonly NeededPrivilege[],
): Promise<string | undefined> {
  const row = await look(dataSource, needed);
  if (row === undefined) return tablesMissing([dataSource.options.migrationsTableName!]);
  if (row.isReadOnly) {
    return 'The database is read-only, as a standby or a former primary is after a fail-over.';
  }
  if (!row.isCurrent) {
    return 'The schema of the database is behind this version of the service: run its migrations.';
  }
  if (row.missing.length > 0) return tablesMissing(row.missing);
  if (row.forbidden.length > 0) {
    return `The role of the service may not do this in the database: ${row.forbidden.join(', ')}. Grant it.`;
  }
  return undefined;
}

/** @returns undefined where there is no table of migrations */
async function look(
  dataSource: DataSource,
  needed: readonly NeededPrivilege[],
): Promise<SchemaRow | undefined> {
  const newest = dataSource.migrations.at(-1)?.constructor.name;
  const names = needed.map(({ entity }) => dataSource.getMetadata(entity).tablePath);
  const privileges = needed.map(({ privilege }) => privilege);
  try {
    const { rows } = await runStatement<SchemaRow>(dataSource, LOOK, [newest, names, privileges]);
    return rows[0];
  } catch (error) {
    if (isTableMissing(error)) return undefined;
    throw error;
  }
}

function tablesMissing(names: readonly string[]): string {
  return `The database lacks what a migration made: ${names.join(', ')}. Restore it, or correct search_path in DATABASE_URL.`;
}
