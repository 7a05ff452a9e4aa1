// Tells by the errors of the database what a client, an operator or a retry can do about them.

import { types } from 'node:util';
import { DatabaseError } from 'pg';
// Not from 'typeorm': its index loads every driver, which takes longer than the unit tests of this file.
import { QueryFailedError } from 'typeorm/error/QueryFailedError.js';
import { ServiceError } from '../errors/service-error.js';
import { StartError } from '../errors/start-error.js';

// An error of the server is recognized by the beginning of its SQLSTATE (PostgreSQL documentation, appendix A). Every other error
// of a connection that is no fault in this program means that the server cannot be reached.

const LOST_RACE = [
  '40001', // serialization failure
  '40P01', // deadlock
];

const LOST_CONNECTION = [
  '08P01', // PgBouncer lost its connection to the server, or cannot make one
  '57P01', // the connection was ended by an administrator or a restart
  '57P02', // another connection crashed the server
  '57P05', // a setting limits how long a session is idle
  '25P03', // and how long its transaction is
  '25P04', // or how long a transaction takes
];

const OF_STATEMENT = [
  '55P03', // a row is locked
  '08000', // Citus cannot reach the server that has the rows
  '08001',
  '08003',
  '08006',
];

const PREPARED_STATEMENT_LOST = [
  '26000', // no such statement
  '42P05', // there is one with this name
];

const MISCONFIGURED = [
  '28', // wrong user or password
  '3D000', // no such database
  '42501', // not allowed
];

const CANCELED = '57014';

/** Errors of this program. Every other error without an SQLSTATE is one of the connection. */
const FAULTS = [TypeError, RangeError, ReferenceError, SyntaxError, ServiceError, StartError];

const TABLE_MISSING = '42P01';

const UNAVAILABLE = [
  ...MISCONFIGURED, // the configuration was right at the start, so the server is being changed
  ...LOST_RACE,
  ...LOST_CONNECTION,
  ...OF_STATEMENT,
  '08', // the connection to another server
  '25006', // read-only transaction: a former primary after a failover
  '53', // too many connections, disk full, out of memory
  '57', // shutdown, crash recovery, statement canceled
  '58', // system error, such as an I/O error
];

const RESTORE = 'its files are damaged, restore a backup';

const TRUST =
  'for a server whose certificate comes from an authority of your own, add sslrootcert=FILE with the certificate of that authority to DATABASE_URL';

/** The codes of Node for a certificate that cannot be trusted, or is of another host. */
const UNTRUSTED = /CERT|VERIFY/;

/** What to do, by the code of an error. */
const ADVICE: Readonly<Record<string, string>> = {
  '25006':
    'it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary',
  '3F000': 'search_path names no schema that exists',
  '55P03':
    'another session holds a lock on a table or a row of the service: pg_locks and pg_stat_activity show which one',
  XX001: RESTORE,
  XX002: RESTORE,
  SELF_SIGNED_CERT_IN_CHAIN: TRUST,
  DEPTH_ZERO_SELF_SIGNED_CERT: TRUST,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: TRUST,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: TRUST,
};

/** What to do, by a part of the message of an error without a code of its own. */
const ADVICE_BY_TEXT: readonly (readonly [text: RegExp, advice: string])[] = [
  [
    /client password must be a string/,
    'the server wants a password: add it to DATABASE_URL, or set PGPASSWORD',
  ],
  [
    /no pg_hba\.conf entry .* no encryption/,
    'the server wants TLS: add sslmode=require to DATABASE_URL',
  ],
  [
    /does not support SSL/,
    'without TLS, anybody on the way can read and change plants: only in a network that you trust, set sslmode=disable in DATABASE_URL',
  ],
  [/sslnegotiation/, 'with sslnegotiation=direct, set sslmode=verify-full in DATABASE_URL'],
  [
    /unsupported startup parameter/,
    'a pooler does not pass on the options of DATABASE_URL: leave them out, and give the role these settings with ALTER ROLE … SET',
  ],
];

/** The database cannot be reached, does not respond in time, or cannot take a write now. */
export function isUnavailable(error: unknown): boolean {
  return isOneOf(UNAVAILABLE, error) || isOfConnection(error);
}

/**
 * The statement lost a race with another one, or its connection broke. It may or may not have been executed: run it
 * again only if that is safe.
 */
export function isRetryable(error: unknown): boolean {
  return isOneOf([...LOST_RACE, ...LOST_CONNECTION], error) || isOfConnection(error);
}

/** Neither an error of the server nor one of this program. */
function isOfConnection(error: unknown): boolean {
  return (
    types.isNativeError(error) &&
    !isDatabaseError(error) &&
    !FAULTS.some((type) => error instanceof type)
  );
}

/** The database works, but not for the rows of this statement. */
export function isOfStatement(error: unknown): boolean {
  return isOneOf(OF_STATEMENT, error);
}

/** The server ended the statement, so its connection can be used again. */
export function mayReuseConnection(error: unknown): boolean {
  return isOneOf([...OF_STATEMENT, CANCELED], error);
}

/** The server does not have the prepared statement, or has another one of that name. */
export function isPreparedStatementLost(error: unknown): boolean {
  return isOneOf(PREPARED_STATEMENT_LOST, error);
}

/** The statement reads or writes a table that does not exist. */
export function isTableMissing(error: unknown): boolean {
  return isOneOf([TABLE_MISSING], error);
}

/** No retry will help: the address, the credentials, the certificates or the privileges are wrong. */
export function isMisconfigured(error: unknown): boolean {
  return (
    isOneOf(MISCONFIGURED, error) ||
    UNTRUSTED.test(codeOf(error) ?? '') ||
    ADVICE_BY_TEXT.some(([text]) => text.test(messageOf(error)))
  );
}

/** The database reported the error. */
export function isDatabaseError(error: unknown): boolean {
  return databaseErrorOf(error) !== undefined;
}

/** TypeORM wraps errors of pg. */
function databaseErrorOf(error: unknown): DatabaseError | undefined {
  const cause: unknown = error instanceof QueryFailedError ? error.driverError : error;
  return cause instanceof DatabaseError ? cause : undefined;
}

function isOneOf(beginnings: readonly string[], error: unknown): boolean {
  const code = databaseErrorOf(error)?.code;
  return code !== undefined && beginnings.some((beginning) => code.startsWith(beginning));
}

/** Node reports a host with several addresses that all failed as an AggregateError without a text. */
function firstOf(error: unknown): unknown {
  const { errors } = (error ?? {}) as { errors?: unknown };
  return Array.isArray(errors) ? errors[0] : error;
}

/** A message for the operator, without the statement, its values or the credentials. */
export function describeDatabaseError(error: unknown): string {
  const code = codeOf(error);
  const text = messageOf(firstOf(error)) || 'unknown failure';
  const message = text === 'Query read timeout' ? 'it does not respond to a statement' : text;
  const described = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const advice = ADVICE[code ?? ''] ?? ADVICE_BY_TEXT.find(([part]) => part.test(message))?.[1];
  return advice === undefined ? described : `${described}; ${advice}`;
}

/** TypeORM copies the code of an error of pg, and its message, to its QueryFailedError. */
function codeOf(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
