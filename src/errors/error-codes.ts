/**
 * The number of every error that the service sends: the HTTP status times 100 plus a serial number. Clients branch on
 * it, so a number never changes its meaning.
 */
export const ErrorCode = {
  badRequest: 40000,
  bodyMissing: 40001,
  unsupportedMediaType: 40002,
  bodyTooLarge: 40003,
  malformedJson: 40004,
  bodyInvalid: 40005,
  idTaken: 40006,
  tokenMissing: 40100,
  tokenInvalid: 40101,
  pathNotFound: 40400,
  methodNotAllowed: 40500,
  requestTimeout: 40800,
  expectationFailed: 41700,
  tooManyAttempts: 42900,
  headersTooLarge: 43100,
  internal: 50000,
  databaseUnavailable: 50300,
  overloaded: 50301,
  shuttingDown: 50302,
  issuerUnavailable: 50303,
} as const;

export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

export type ErrorName = keyof typeof ErrorCode;

/** For clients: when an error is sent, and how to react. docs/api.md has the same table. */
export const ERROR_MEANINGS: Readonly<Record<ErrorName, { when: string; remedy: string }>> = {
  badRequest: {
    when: 'malformed HTTP, or another fault of the request',
    remedy: 'correct the client',
  },
  bodyMissing: { when: 'the body is missing or empty', remedy: 'send a plant' },
  unsupportedMediaType: {
    when: 'the body is not plain UTF-8 `application/json`',
    remedy: 'set `Content-Type: application/json`, no encoding',
  },
  bodyTooLarge: { when: 'the body is larger than the limit', remedy: 'send less' },
  malformedJson: {
    when: 'not JSON: syntax, UTF-8, a repeated field, nested deeper than 512 levels',
    remedy: 'correct the JSON',
  },
  bodyInvalid: {
    when: 'not a plant; the message names every field that is wrong',
    remedy: 'correct the fields',
  },
  idTaken: { when: 'the id belongs to a different plant', remedy: 'choose another id' },
  tokenMissing: { when: 'no bearer token', remedy: 'send one' },
  tokenInvalid: { when: 'the token is not valid, or no longer valid', remedy: 'get a new one' },
  pathNotFound: {
    when: 'no such path',
    remedy: 'check case and slashes: routes are strict',
  },
  methodNotAllowed: {
    when: 'no such method on this path',
    remedy: 'use a method in the header `Allow`',
  },
  requestTimeout: { when: 'the request did not arrive in time', remedy: 'send it again' },
  expectationFailed: { when: 'an `Expect` other than `100-continue`', remedy: 'remove it' },
  tooManyAttempts: {
    when: 'too many wrong tokens from this address',
    remedy: 'repeat after `Retry-After` seconds',
  },
  headersTooLarge: {
    when: 'the header fields are too large',
    remedy: 'send fewer or shorter ones',
  },
  internal: {
    when: 'a fault of the service; details are in its log',
    remedy: 'inform the operator; repeating is safe',
  },
  databaseUnavailable: {
    when: 'the database cannot be reached or does not respond in time',
    remedy: 'repeat after `Retry-After` seconds',
  },
  overloaded: {
    when: 'more work is waiting than the service accepts',
    remedy: 'repeat after `Retry-After` seconds',
  },
  shuttingDown: { when: 'the service is shutting down', remedy: 'repeat on a new connection' },
  issuerUnavailable: {
    when: 'the identity provider is away or set up wrongly: the token is unchecked',
    remedy: 'repeat after `Retry-After` seconds',
  },
};

/** The HTTP status of an error number: 400 for 40006. */
export function statusOf(code: ErrorCode): number {
  return Math.floor(code / 100);
}
