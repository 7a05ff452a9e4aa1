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

/** The HTTP status of an error number: 400 for 40006. */
export function statusOf(code: ErrorCode): number {
  return Math.floor(code / 100);
}
