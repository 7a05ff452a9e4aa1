import { DatabaseError } from 'pg';
// Not from 'typeorm': its index loads every driver, which takes longer than the unit tests of this file.
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';

// A failure is recognized by its code: the beginning of an SQLSTATE (PostgreSQL documentation, appendix A) or the name of a
// system error. Where pg gives no code, it is recognized by the beginning of its message. A failed call to the operating
// system is recognized without its code: see isSystemError.

/** Extensions such as Citus use this code for failures of any kind, and only the message tells which one it is. */
const INTERNAL_ERROR = 'XX000';

const LOST_RACE = [
  '40001', // serialization failure
  '40P01', // deadlock
];

const LOST_CONNECTION = [
  '57P01', // the connection was ended by an administrator or a restart
  '57P02', // another connection crashed the server
  '57P05', // a setting limits how long a session is idle
  '25P03', // and how long its transaction is
  '25P04', // or how long a transaction takes
  'ECONNRESET',
  'EPIPE',
  'Connection terminated unexpectedly',
  'postmaster was shut down', // Citus, when its own server died
  'Client has encountered a connection error',
];

const PART_UNAVAILABLE = [
  '08000', // connection exception
  '08001', // the connection cannot be made
  '08003', // the connection does not exist
  '08006', // the connection broke, or cannot be made
];

const PREPARED_STATEMENT_LOST = [
  '26000', // no such statement
  '42P05', // there is one with this name
  '0A000', // the table was changed after the statement was prepared
];

const MISCONFIGURED = [
  '28', // wrong user or password
  '3D000', // no such database
  '42501', // not allowed
];

/** The message of pg about a statement to which the server did not respond. */
export const READ_TIMEOUT = 'Query read timeout';

const TIMEOUTS = [
  READ_TIMEOUT,
  'timeout exceeded when trying to connect',
  'timeout expired',
  'Connection terminated due to connection timeout',
];

const UNAVAILABLE = [
  ...MISCONFIGURED, // the configuration was right at the start, so the server is being changed
  ...LOST_RACE,
  ...LOST_CONNECTION,
  '08', // connection exception
  '25006', // read-only transaction: a former primary after a failover
  '53', // too many connections, disk full, out of memory
  '55P03', // lock not available
  '57', // shutdown, crash recovery, statement canceled
  '58', // system error, such as an I/O error
  ...TIMEOUTS,
  'Connection terminated',
  'Client was closed',
  'Cannot use a pool after calling end',
  'Query runner already released', // TypeORM, when the connection was lost between two statements
];

const RESTORE = 'its files are damaged, restore a backup';

const TRUST =
  'for a server whose certificate comes from an authority of your own, add sslrootcert=FILE with the certificate of that authority to DATABASE_URL';

/** What to do, by the code of an error. */
const ADVICE: Readonly<Record<string, string>> = {
  '25006':
    'it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary',
  '3F000': 'search_path names no schema that exists',
  '55P03':
    'another session holds a lock on a table of the service: pg_locks and pg_stat_activity show which one',
  XX001: RESTORE,
  XX002: RESTORE,
  SELF_SIGNED_CERT_IN_CHAIN: TRUST,
  DEPTH_ZERO_SELF_SIGNED_CERT: TRUST,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST,
};

/** What to do, by a part of the message of an error without a code of its own. */
const ADVICE_BY_TEXT: readonly (readonly [text: string, advice: string])[] = [
  [
    'client password must be a string',
    'the server wants a password: add it to DATABASE_URL, or set PGPASSWORD',
  ],
  [', no encryption', 'the server wants TLS: add sslmode=require to DATABASE_URL'],
  [
    'does not support SSL',
    'without TLS, anybody on the way can read and change plants: only in a network that you trust, set sslmode=disable in DATABASE_URL',
  ],
];

/** The database cannot be reached, does not respond in time, or cannot take a write now. */
export function isUnavailable(error: unknown): boolean {
  return isOneOf(UNAVAILABLE, error) || isSystemError(error);
}

/**
 * A call to the operating system failed, for whatever reason, such as a refused connection, a name that is not known, or
 * no descriptor left: the connection cannot be made, or broke.
 */
function isSystemError(error: unknown): boolean {
  return typeof (firstOf(error) as { syscall?: unknown } | null | undefined)?.syscall === 'string';
}

/** Node reports a host with several addresses that all failed as an AggregateError without a text. */
function firstOf(error: unknown): unknown {
  const { errors } = (error ?? {}) as { errors?: unknown };
  return Array.isArray(errors) ? errors[0] : error;
}

/**
 * The server reports that its own connection to another server failed, as Citus does when a worker is unavailable. Citus has
 * tried a new connection before. Errors of the connection to the server itself do not come from the database.
 */
export function isPartUnavailable(error: unknown): boolean {
  return isDatabaseError(error) && isOneOf(PART_UNAVAILABLE, error);
}

/**
 * The statement lost a race with another one, or its connection broke. It may or may not have been executed: run it
 * again only if that is safe.
 */
export function isRetryable(error: unknown): boolean {
  return isOneOf(LOST_RACE, error) || isOneOf(LOST_CONNECTION, error);
}

/** The server does not have the prepared statement, has another one of that name, or its table was changed. */
export function isPreparedStatementLost(error: unknown): boolean {
  return isOneOf(PREPARED_STATEMENT_LOST, error);
}

/** The database did not respond in time, so why it is not available is not known. */
export function isTimeout(error: unknown): boolean {
  return isOneOf(TIMEOUTS, error);
}

/** The server ended the statement because its time was up, or an administrator did: the connection is free again. */
export function isCanceled(error: unknown): boolean {
  return isDatabaseError(error) && isOneOf(['57014', '55P03'], error);
}

/** The statement reads or writes a table that does not exist. */
export function isTableMissing(error: unknown): boolean {
  return isOneOf(['42P01'], error);
}

/** The database does not have the feature or the function. */
export function isUnsupported(error: unknown): boolean {
  return isOneOf(['0A000', '42883'], error);
}

/** No retry will help: the address, the credentials or the privileges are wrong. */
export function isMisconfigured(error: unknown): boolean {
  return isOneOf(MISCONFIGURED, error);
}

/** The database reported the error. */
export function isDatabaseError(error: unknown): boolean {
  // TypeORM wraps a lost connection, too.
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return cause instanceof DatabaseError;
}

/** A message for the operator, without the statement, its values or the credentials. */
export function describeDatabaseError(error: unknown): string {
  const code = codeOf(error);
  const text = messageOf(firstOf(error)) || 'unknown failure';
  const message = text === READ_TIMEOUT ? 'it does not respond to a statement' : text;
  const described = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const advice = ADVICE[code ?? ''] ?? ADVICE_BY_TEXT.find(([part]) => message.includes(part))?.[1];
  return advice === undefined ? described : `${described}; ${advice}`;
}

function isOneOf(beginnings: readonly string[], error: unknown): boolean {
  const code = codeOf(error);
  const reason = code === undefined || code === INTERNAL_ERROR ? messageOf(error) : code;
  return beginnings.some((beginning) => reason.startsWith(beginning));
}

/** TypeORM copies the code of an error of pg, and its message, to its QueryFailedError. */
function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
