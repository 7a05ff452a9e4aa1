// Every error that clients get: its number, when it is sent, what a client does about it, its message and its header fields.

import { ServiceError, type ErrorKind, type HeaderFields } from './service-error.js';

interface Declaration<Args extends readonly unknown[]> extends Omit<
  ErrorKind,
  'title' | 'headers'
> {
  /** A sentence that names the problem and the remedy, for people. */
  readonly message: (...args: Args) => string;
  /** Header fields of the response. */
  readonly headers?: HeaderFields;
  readonly headersOf?: (...args: Args) => HeaderFields;
}

/** Makes the error. The cause is only for the log: it may contain what clients must not see. */
type Make<Args extends readonly unknown[]> = (...args: [...Args, cause?: unknown]) => ServiceError;

const all: ErrorKind[] = [];

/** Every error, in the order of their numbers. */
export const ERRORS: readonly ErrorKind[] = all;

/** @param title the name of its example in the OpenAPI document */
function declare<Args extends readonly unknown[]>(
  title: string,
  { message, headersOf, headers = {}, ...about }: Declaration<Args>,
): ErrorKind & Make<Args> {
  if (all.some((other) => other.code === about.code)) throw new Error(`${about.code} is taken.`);
  // The cause follows the arguments of `message`, none of which has a default.
  const make: Make<Args> = (...given) => {
    const cause = given[message.length];
    const args = given as unknown as Args;
    return new ServiceError(kind, message(...args), { cause, headers: headersOf?.(...args) });
  };
  const kind = Object.assign(make, { title, headers, ...about });
  all.push(kind);
  return kind;
}

/** For clients, after a failure that ends soon. */
export const SEND_AGAIN = 'Send the request again in a moment.';

const CLOSE: HeaderFields = { Connection: 'close' };
const RETRY_IN_A_SECOND: HeaderFields = { 'Retry-After': '1' };
const LIST = new Intl.ListFormat('en-GB');
const REPEAT = 'repeat after `Retry-After` seconds';

export const badRequest = declare('badRequest', {
  code: 40000,
  when: 'malformed HTTP, or another fault of the request',
  remedy: 'correct the client',
  message: (problem: string) => problem,
});

/** What the HTTP parser refuses. */
export const invalidHttp = (): ServiceError => badRequest('The request is not valid HTTP.');

export const bodyMissing = declare('bodyMissing', {
  code: 40001,
  when: 'the body is missing or empty',
  remedy: 'send a plant',
  message: () => 'The body is missing. Send JSON, as /docs shows it.',
});

export const unsupportedMediaType = declare('unsupportedMediaType', {
  code: 40002,
  when: 'the body is not plain UTF-8 `application/json`',
  remedy: 'set `Content-Type: application/json`, no encoding',
  message: (remedy: string) => remedy,
});

export const bodyTooLarge = declare('bodyTooLarge', {
  code: 40003,
  when: 'the body is larger than the limit',
  remedy: 'send less',
  message: (limit: number) => `The body is larger than ${limit} bytes.`,
});

export const malformedJson = declare('malformedJson', {
  code: 40004,
  when: 'not JSON: syntax, UTF-8, a repeated field, nested deeper than 512 levels',
  remedy: 'correct the JSON',
  message: (reason: string) => `The body cannot be read as JSON: ${reason}.`,
});

export const bodyInvalid = declare('bodyInvalid', {
  code: 40005,
  when: 'not a plant; the message names every field that is wrong',
  remedy: 'correct the fields',
  message: (problem: string) => problem,
});

export const idTaken = declare('idTaken', {
  code: 40006,
  when: 'the id belongs to a different plant',
  remedy: 'choose another id',
  message: (id: bigint) =>
    `The id ${id} belongs to a different plant. Stored plants do not change: send this one under another id.`,
});

export const tokenMissing = declare('tokenMissing', {
  code: 40100,
  when: 'no bearer token',
  remedy: 'send one',
  message: () => 'A bearer token is needed: send the header Authorization: Bearer <token>.',
  // RFC 6750 section 3: no error attribute when the request carried no token at all.
  headers: { 'WWW-Authenticate': 'Bearer realm="plant-store"' },
});

/** Its cause has no part of the token. */
export const tokenInvalid = declare('tokenInvalid', {
  code: 40101,
  when: 'the token is not valid, or no longer valid',
  remedy: 'get a new one',
  message: () => 'The bearer token is not valid, or no longer valid.',
  headers: { 'WWW-Authenticate': 'Bearer realm="plant-store", error="invalid_token"' },
});

export const pathNotFound = declare('pathNotFound', {
  code: 40400,
  when: 'no such path',
  remedy: 'check case and slashes: routes are strict',
  message: () => 'There is nothing at this path; /docs describes the service.',
});

export const methodNotAllowed = declare('methodNotAllowed', {
  code: 40500,
  when: 'no such method on this path',
  remedy: 'use a method in the header `Allow`',
  message: (path: string, method: string, allowed: readonly string[]) =>
    `${path} does not support ${method}, only ${LIST.format(allowed)}.`,
  // RFC 9110 section 15.5.6.
  headersOf: (_path, _method, allowed) => ({ Allow: allowed.join(', ') }),
});

export const requestTimeout = declare('requestTimeout', {
  code: 40800,
  when: 'the request did not arrive in time',
  remedy: 'send it again',
  message: () => 'The request did not arrive in time.',
  headers: CLOSE,
});

export const expectationFailed = declare('expectationFailed', {
  code: 41700,
  when: 'an `Expect` other than `100-continue`',
  remedy: 'remove it',
  message: () => 'Only Expect: 100-continue is understood.',
});

export const tooManyAttempts = declare('tooManyAttempts', {
  code: 42900,
  when: 'too many wrong tokens from this address',
  remedy: REPEAT,
  message: (seconds: number) =>
    `Too many tokens from your address were not valid. Send the request again in ${seconds} seconds.`,
  headersOf: (seconds) => ({ 'Retry-After': String(seconds) }),
});

export const headersTooLarge = declare('headersTooLarge', {
  code: 43100,
  when: 'the header fields are too large',
  remedy: 'send fewer or shorter ones',
  message: () => 'The header fields are too large.',
});

export const internal = declare('internal', {
  code: 50000,
  when: 'a fault of the service; details are in its log',
  remedy: 'inform the operator; repeating is safe',
  message: () =>
    'The service failed to handle this request. The fault is ours; trying again later is safe.',
});

export const databaseUnavailable = declare('databaseUnavailable', {
  code: 50300,
  when: 'the database cannot be reached or does not respond in time',
  remedy: REPEAT,
  message: () => `The database cannot be reached or does not respond in time. ${SEND_AGAIN}`,
  headers: RETRY_IN_A_SECOND,
});

/** The service accepts no more requests until some in flight are done. */
export const overloaded = declare('overloaded', {
  code: 50301,
  when: 'more work is waiting than the service accepts',
  remedy: REPEAT,
  message: () => `The service has more work waiting than it accepts. ${SEND_AGAIN}`,
  headers: RETRY_IN_A_SECOND,
});

/** This process is about to end, and the client must connect to another one. */
export const shuttingDown = declare('shuttingDown', {
  code: 50302,
  when: 'the service is shutting down',
  remedy: 'repeat on a new connection',
  message: () =>
    'This instance of the service is shutting down. Send the request again on a new connection.',
  headers: CLOSE,
});

export const issuerUnavailable = declare('issuerUnavailable', {
  code: 50303,
  when: 'the identity provider is away or set up wrongly: the token is unchecked',
  remedy: REPEAT,
  message: () =>
    `The token cannot be checked now, because the identity provider does not respond. ${SEND_AGAIN}`,
  headers: RETRY_IN_A_SECOND,
});

/**
 * A mistake of whoever set up the service or the identity provider: unlike an outage, it does not end in a moment.
 *
 * @param reason only for the log
 */
export function issuerMisconfigured(reason: string): ServiceError {
  return new ServiceError(
    issuerUnavailable,
    'The token cannot be checked, because the service and its identity provider are not set up for each other. Inform the operator of the service.',
    { cause: new Error(reason), headers: { 'Retry-After': '60' } },
  );
}

/**
 * The database works, but not for the rows of one statement: another session has locked one of them, or a server that has some of
 * them cannot be reached. Statements about other rows may succeed.
 */
export class RowsUnavailableError extends ServiceError {
  constructor(cause: unknown) {
    super(databaseUnavailable, databaseUnavailable().message, { cause });
  }
}
