import { DatabaseError } from 'pg';
import { QueryFailedError } from 'typeorm';

/**
 * What failed when the database refused a connection or a statement, for callers that must not know
 * SQLSTATEs (PostgreSQL documentation, appendix A).
 */

/** The database did not answer within the time a request may wait for it. */
export class StatementTimeoutError extends Error {
  override readonly name = 'StatementTimeoutError';

  constructor() {
    super('The database did not answer in time');
  }
}

/** The database cannot be reached, does not answer in time, or cannot take a write now. */
export function isUnavailable(error: unknown): boolean {
  if (error instanceof StatementTimeoutError) return true;
  const code = codeOf(error);
  if (code === undefined) {
    return UNCODED_CONNECTION_FAILURES.some((text) => messageOf(error).includes(text));
  }
  return code.startsWith('E') ? NETWORK_ERRORS.has(code) : matches(code, UNAVAILABLE);
}

/**
 * The statement lost a race with another one, or its connection; it may have been carried out or not. A
 * statement that may safely be repeated is best run again at once.
 */
export function isRetryable(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined)
    return LOST_CONNECTION_TEXTS.some((text) => messageOf(error).includes(text));
  return matches(code, LOST_RACE) || matches(code, LOST_CONNECTION);
}

/** The server does not have the prepared statement, has it from somebody else, or has changed the table since. */
export function isPreparedStatementLost(error: unknown): boolean {
  return matches(codeOf(error), PREPARED_STATEMENT_LOST);
}

/** The statement reads or writes a table that is not there. */
export function isTableMissing(error: unknown): boolean {
  return codeOf(error) === '42P01';
}

/** No retry will help: the address or the credentials are wrong. */
export function isMisconfigured(error: unknown): boolean {
  return matches(codeOf(error), MISCONFIGURED);
}

/** Whether the database said this. */
export function isDatabaseError(error: unknown): boolean {
  return error instanceof QueryFailedError || error instanceof DatabaseError;
}

/** One line for the operator, without the statement, its values or the credentials. */
export function describeDatabaseError(error: unknown): string {
  const cause = causeOf(error);
  const code = codeOf(error);
  // Node reports a host with several addresses that all refused as an AggregateError without a text.
  const first = cause instanceof AggregateError ? (cause.errors[0] as unknown) : cause;
  const message = messageOf(first) || 'unknown failure';
  const text = code === undefined || message.includes(code) ? message : `${message} (${code})`;
  const advice = ADVICE[code ?? ''];
  return advice === undefined ? text : `${text}; ${advice}`;
}

const LOST_RACE = [
  '40001', // serialization failure
  '40P01', // deadlock
];

const RESTORE = 'its files are damaged, restore a copy of them';

const ADVICE: Readonly<Record<string, string>> = {
  '25006':
    'it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary',
  XX001: RESTORE,
  XX002: RESTORE,
};

const PREPARED_STATEMENT_LOST = [
  '26000', // no such statement
  '42P05', // there is one with this name
  '0A000', // its plan does not fit the table any more
];

const LOST_CONNECTION = [
  '57P01', // the connection was ended by an administrator or a restart
  '57P02', // another connection crashed the server
  '08003', // the connection does not exist (any more)
  '08006', // the connection broke
  'ECONNRESET',
  'EPIPE',
];

const MISCONFIGURED = [
  '28', // wrong user or password
  '3D000', // no such database
  '42501', // not allowed
];

/** What is wrong with the configuration now was right at the start: somebody is changing the server. */
const UNAVAILABLE = [
  ...MISCONFIGURED,
  ...LOST_RACE,
  '08', // connection exception
  '25006', // read-only transaction: a former primary after a fail-over
  '53', // too many connections, disk full, out of memory
  '55P03', // lock not available
  '57', // shutdown, crash recovery, statement cancelled
  '58', // system error, such as an I/O error
];

const NETWORK_ERRORS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]);

/** What pg says, without a code, when a connection was lost. */
const LOST_CONNECTION_TEXTS = [
  'Connection terminated unexpectedly',
  'Client has encountered a connection error',
];

/** What pg reports without a code. */
const UNCODED_CONNECTION_FAILURES = [
  ...LOST_CONNECTION_TEXTS,
  'Query read timeout',
  'timeout exceeded when trying to connect',
  'Connection terminated',
  'Client was closed',
  'Cannot use a pool after calling end',
  'server login has been failing', // PgBouncer
];

function matches(code: string | undefined, prefixes: readonly string[]): boolean {
  return code !== undefined && prefixes.some((prefix) => code.startsWith(prefix));
}

function causeOf(error: unknown): unknown {
  return error instanceof QueryFailedError ? error.driverError : error;
}

function codeOf(error: unknown): string | undefined {
  const code = (causeOf(error) as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'string' ? code : undefined;
}

function messageOf(error: unknown): string {
  const cause = causeOf(error);
  return cause instanceof Error ? cause.message : String(cause);
}
