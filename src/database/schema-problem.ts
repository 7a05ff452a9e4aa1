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
 * see docs/database.md.
 *
 * @param needed all privileges that requests need
 * @returns the kind of the problem for anybody, with the reason for the operator as its cause; undefined if there is none
 * @throws ServiceError databaseUnavailable when the database cannot be reached, does not respond in time or is read-only
 */
export async function schemaProblem(
  dataSource: DataSource,
  needed: readonly NeededPrivilege[],
): Promise<ServiceError | undefined> {
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
    const wrongSettings = sessionProblem(settings.rows, timeout);
    return wrongSettings === undefined
      ? problemOf(rows[0]!)
      : problem(WRONG_SETTINGS, new StartError(wrongSettings));
  } catch (error) {
    if (isTableMissing(error)) {
      const reason = `The database lacks a table: ${describeDatabaseError(error)}. Restore it, or correct search_path in DATABASE_URL.`;
      return problem('The database lacks a table', new StartError(reason));
    }
    // runStatement has wrapped the error of pg.
    const cause = error instanceof ServiceError ? error.cause : undefined;
    // A new connection has checked its settings.
    if (cause instanceof StartError) return problem(WRONG_SETTINGS, cause);
    if (!isMisconfigured(cause)) throw error;
    const reason = `The database refuses the service: ${describeDatabaseError(cause)}.`;
    return problem('The database refuses the service', new StartError(reason));
  }
}

const WRONG_SETTINGS = 'The role of the service needs other settings';

/** Anybody may ask whether the service is ready, so the names of roles, hosts and tables are only in the cause. */
function problem(kind: string, cause: Error): ServiceError {
  const message = `${kind}: see the log of the service.`;
  return new ServiceError(databaseUnavailable, message, { cause });
}

function problemOf({ isReadOnly, isCurrent, forbidden }: SchemaRow): ServiceError | undefined {
  if (isReadOnly) {
    const reason = 'it is read-only, as a standby or a former primary is after a failover';
    throw problem('The database is read-only', new Error(reason));
  }
  if (!isCurrent) {
    const kind = 'The schema of the database is behind this version of the service';
    return problem(kind, new StartError(`${kind}: run its migrations.`));
  }
  if (forbidden.length > 0) {
    const kind = 'The role of the service lacks a privilege';
    const reason = `The role of the service may not do this in the database: ${forbidden.join(', ')}. Grant it.`;
    return problem(kind, new StartError(reason));
  }
  return undefined;
}
