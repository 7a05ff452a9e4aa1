import type { DataSource, EntityTarget } from 'typeorm';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { describeDatabaseError, isMisconfigured, isTableMissing } from './postgres-errors.js';
import { runStatement } from './run-statement.js';

/** What requests do with a table. */
export interface NeededPrivilege {
  readonly entity: EntityTarget<object>;
  readonly privilege: 'SELECT' | 'INSERT';
  /** The columns that they do it with: a role may be given no more than those. */
  readonly columns: readonly string[];
}

interface SchemaRow {
  readonly isReadOnly: boolean;
  readonly isCurrent: boolean;
  readonly missing: string[];
  readonly forbidden: string[];
}

/** Tables and columns are looked up by name, because a statement that reads a missing one fails as a whole. */
const LOOK = `
  WITH needed AS (
    SELECT name, privilege, col, to_regclass(name)::oid AS oid
    FROM unnest($2::text[], $3::text[], $4::text[]) AS needed (name, privilege, col)
  ), found AS (
    SELECT needed.*, EXISTS (
      SELECT 1 FROM pg_attribute WHERE attrelid = oid AND attname = col AND NOT attisdropped
    ) AS is_there
    FROM needed
  )
  SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    EXISTS (SELECT 1 FROM migrations WHERE name = $1) AS "isCurrent",
    ARRAY(
      SELECT DISTINCT CASE WHEN oid IS NULL THEN name ELSE name || '.' || col END
      FROM found WHERE NOT is_there
      UNION
      SELECT 'the primary key of ' || name FROM found
      WHERE privilege = 'INSERT' AND oid IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = oid AND indisprimary)
      ORDER BY 1
    ) AS missing,
    ARRAY(
      SELECT DISTINCT privilege || ' on ' || name FROM found
      WHERE CASE WHEN is_there THEN NOT has_column_privilege(oid, col, privilege) ELSE false END
      ORDER BY 1
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
  const rows = needed.flatMap(({ entity, privilege, columns }) => {
    const name = dataSource.getMetadata(entity).tablePath;
    return columns.map((column) => [name, privilege, column]);
  });
  const columnsOf = [0, 1, 2].map((i) => rows.map((row) => row[i]));
  try {
    const result = await runStatement<SchemaRow>(dataSource, LOOK, [newest, ...columnsOf]);
    return result.rows[0];
  } catch (error) {
    if (isTableMissing(error)) return undefined;
    const cause = error instanceof Error ? error.cause : undefined;
    if (isMisconfigured(cause)) {
      const reason = `The database refuses the service: ${describeDatabaseError(cause)}.`;
      throw new ServiceError(ErrorCode.databaseUnavailable, reason, { cause });
    }
    throw error;
  }
}

function tablesMissing(names: readonly string[]): string {
  return `The database lacks what a migration made: ${names.join(', ')}. Restore it, or correct search_path in DATABASE_URL.`;
}
