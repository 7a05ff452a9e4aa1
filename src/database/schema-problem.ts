import type { DataSource, EntityTarget } from 'typeorm';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { describeDatabaseError, isMisconfigured, isTableMissing } from './postgres-errors.js';
import { runStatement } from './run-statement.js';

/** A privilege on a table that requests need. */
export interface NeededPrivilege {
  readonly entity: EntityTarget<object>;
  readonly privilege: 'SELECT' | 'INSERT' | 'UPDATE';
  /** The columns that requests use: a role may be granted these and no others. */
  readonly columns: readonly string[];
}

interface SchemaRow {
  readonly isReadOnly: boolean;
  readonly isCurrent: boolean;
  readonly missing: string[];
  readonly forbidden: string[];
}

/** Looks tables and columns up by name, because a statement that reads a missing one fails as a whole. */
const INSPECT = `
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
 * Finds a problem that only an operator can solve. A schema that is newer than this version is not a problem:
 * see docs/upgrades.md.
 *
 * @param needed all privileges that requests need
 * @returns the reason, one sentence; undefined if there is none
 * @throws ServiceError databaseUnavailable when the database cannot be reached, does not respond in time or is read-only
 */
export async function schemaProblem(
  dataSource: DataSource,
  needed: readonly NeededPrivilege[],
): Promise<string | undefined> {
  let row: SchemaRow;
  try {
    row = await inspect(dataSource, needed);
  } catch (error) {
    // `migrations` is the only table that the statement itself reads.
    if (isTableMissing(error)) return tablesMissing(['migrations']);
    // runStatement has wrapped the error of pg.
    const cause = error instanceof Error ? error.cause : undefined;
    if (!isMisconfigured(cause)) throw error;
    return `The database refuses the service: ${describeDatabaseError(cause)}.`;
  }
  if (row.isReadOnly) {
    throw new ServiceError(
      ErrorCode.databaseUnavailable,
      'The database is read-only, as a standby or a former primary is after a failover.',
    );
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

async function inspect(
  dataSource: DataSource,
  needed: readonly NeededPrivilege[],
): Promise<SchemaRow> {
  const newest = dataSource.migrations.at(-1)?.constructor.name;
  const columns = needed.flatMap(({ entity, privilege, columns }) => {
    const table = dataSource.getMetadata(entity).tablePath;
    return columns.map((column) => ({ table, privilege, column }));
  });
  const { rows } = await runStatement<SchemaRow>(dataSource, INSPECT, [
    newest,
    columns.map(({ table }) => table),
    columns.map(({ privilege }) => privilege),
    columns.map(({ column }) => column),
  ]);
  return rows[0]!;
}

function tablesMissing(names: readonly string[]): string {
  return `The database lacks what a migration made: ${names.join(', ')}. Restore it, or correct search_path in DATABASE_URL.`;
}
