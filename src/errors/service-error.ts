// The failures that clients get as an Error, and the one that nobody gets.

import { ErrorCode } from './error-codes.js';

interface ServiceErrorOptions extends ErrorOptions {
  /** Header fields of the response, besides those in send-error.ts. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A failure that is reported to the client: its number, and a sentence that names the problem and the remedy. Every other
 * error is a fault of the service, and its client gets a constant text.
 */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly headers: Readonly<Record<string, string>> | undefined;

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ServiceErrorOptions,
  ) {
    super(message, options);
    this.headers = options?.headers;
  }
}

/** For clients, after a failure that ends soon. */
export const SEND_AGAIN = 'Send the request again in a moment.';

// The messages of errors that several features or the OpenAPI document need.

export function invalidHttp(): ServiceError {
  return new ServiceError(ErrorCode.badRequest, 'The request is not valid HTTP.');
}

export function tokenMissing(): ServiceError {
  return new ServiceError(
    ErrorCode.tokenMissing,
    'A bearer token is needed: send the header Authorization: Bearer <token>.',
  );
}

/** @param reason only for the log, so it has no part of the token */
export function tokenInvalid(reason?: string): ServiceError {
  return new ServiceError(
    ErrorCode.tokenInvalid,
    'The bearer token is not valid, or no longer valid.',
    { cause: reason },
  );
}

/** @param retryAfter seconds */
export function tooManyAttempts(retryAfter: number): ServiceError {
  return new ServiceError(
    ErrorCode.tooManyAttempts,
    `Too many tokens from your address were not valid. Send the request again in ${retryAfter} seconds.`,
    { headers: { 'Retry-After': String(retryAfter) } },
  );
}

const UNAVAILABLE = `The database cannot be reached or does not respond in time. ${SEND_AGAIN}`;

/** @param cause only for the log */
export function databaseUnavailable(cause?: unknown): ServiceError {
  return new ServiceError(ErrorCode.databaseUnavailable, UNAVAILABLE, { cause });
}

/**
 * The database works, but not for the rows of one statement: another session has locked one of them, or a server that has some of
 * them cannot be reached. Statements about other rows may succeed.
 */
export class RowsUnavailableError extends ServiceError {
  constructor(cause: unknown) {
    super(ErrorCode.databaseUnavailable, UNAVAILABLE, { cause });
  }
}

/** Ends the work on a request whose client has given up: nobody reads a response. */
export class ConnectionClosed extends Error {
  override readonly name = 'ConnectionClosed';
}

/** @param cause only for the log: it may contain what clients must not see */
export function internal(cause?: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.internal,
    'The service failed to handle this request. The fault is ours; trying again later is safe.',
    { cause },
  );
}

/** @param cause only for the log */
export function issuerUnavailable(cause?: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.issuerUnavailable,
    `The token cannot be checked now, because the identity provider does not respond. ${SEND_AGAIN}`,
    { cause },
  );
}

/**
 * A mistake of whoever set up the service or the identity provider: unlike an outage, it does not end in a moment.
 *
 * @param reason only for the log
 */
export function issuerMisconfigured(reason: string): ServiceError {
  return new ServiceError(
    ErrorCode.issuerUnavailable,
    'The token cannot be checked, because the service and its identity provider are not set up for each other. Inform the operator of the service.',
    { cause: new Error(reason), headers: { 'Retry-After': '60' } },
  );
}

/** The service accepts no more requests until some in flight are done. */
export function overloaded(): ServiceError {
  return new ServiceError(
    ErrorCode.overloaded,
    `The service has more work waiting than it accepts. ${SEND_AGAIN}`,
  );
}

/** This process is about to end, and the client must connect to another one. */
export function shuttingDown(): ServiceError {
  return new ServiceError(
    ErrorCode.shuttingDown,
    'This instance of the service is shutting down. Send the request again on a new connection.',
  );
}

/** Why a request failed, in one line for the log. */
export function reasonOf({ message, cause }: Error): string {
  return cause instanceof Error ? messagesOf(cause).join(': ') : message;
}

/** The messages of an error and its causes. An AggregateError has no message, and the one of `fetch` does not say why it failed. */
function messagesOf(error: Error): string[] {
  const cause: unknown = error instanceof AggregateError ? error.errors[0] : error.cause;
  return [error.message, ...(cause instanceof Error ? messagesOf(cause) : [])].filter(Boolean);
}
