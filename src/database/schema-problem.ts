// Tells why the database, although it can be reached, does not let the service do its work.

import type { DataSource } from 'typeorm';
import { databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { StartError } from '../errors/start-error.js';
import { describeDatabaseError, isMisconfigured, isTableMissing } from './postgres-errors.js';
import { poolOf, prepared, runStatement } from './run-statement.js';
import { SESSION_SETTINGS, sessionParameters, sessionProblem, type SettingRow } from './session.js';

/** A privilege that requests need. The role may have it for some columns only. */
export interface NeededPrivilege {
  readonly table: string;
  readonly privilege: 'SELECT' | 'INSERT' | 'UPDATE';
}

interface SchemaRow {
  readonly isReadOnly: boolean;
  readonly isCurrent: boolean;
  readonly forbidden: string[];
}

const INSPECT = prepared(`
  SELECT current_setting('transaction_read_only') = 'on' AS "isReadOnly",
    EXISTS (SELECT 1 FROM migrations WHERE name = $1) AS "isCurrent",
    ARRAY(
      SELECT privilege || ' on ' || name FROM unnest($2::text[], $3::text[]) AS needed (name, privilege)
      WHERE NOT has_any_column_privilege(name, privilege)
    ) AS forbidden`);

const READ_SETTINGS = prepared(SESSION_SETTINGS);

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
  try {
    const timeout = poolOf(dataSource).options.query_timeout as number;
    const settings = await runStatement<SettingRow>(
      dataSource,
      READ_SETTINGS,
      sessionParameters(timeout),
    );
    const { rows } = await runStatement<SchemaRow>(dataSource, INSPECT, [
      dataSource.migrations.at(-1)?.constructor.name,
      needed.map(({ table }) => table),
      needed.map(({ privilege }) => privilege),
    ]);
    return sessionProblem(settings.rows, timeout) ?? problemOf(rows[0]!);
  } catch (error) {
    if (isTableMissing(error)) {
      return `The database lacks a table: ${describeDatabaseError(error)}. Restore it, or correct search_path in DATABASE_URL.`;
    }
    // runStatement has wrapped the error of pg.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    // A new connection has checked its settings.
    if (cause instanceof StartError) return cause.message;
    if (!isMisconfigured(cause)) throw error;
    return `The database refuses the service: ${describeDatabaseError(cause)}.`;
  }
}

function problemOf({ isReadOnly, isCurrent, forbidden }: SchemaRow): string | undefined {
  if (isReadOnly) {
    throw new ServiceError(
      databaseUnavailable,
      'The database is read-only, as a standby or a former primary is after a failover.',
    );
  }
  if (!isCurrent) {
    return 'The schema of the database is behind this version of the service: run its migrations.';
  }
  if (forbidden.length > 0) {
    return `The role of the service may not do this in the database: ${forbidden.join(', ')}. Grant it.`;
  }
  return undefined;
}
