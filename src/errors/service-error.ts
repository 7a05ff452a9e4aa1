import { ErrorCode } from './error-codes.js';

/**
 * A failure the client is told about: its number, and a sentence that says what is wrong, where,
 * and what to do. Anything else that is thrown is a fault of ours, and its client gets a constant text.
 */
export class ServiceError extends Error {
  override readonly name: string = 'ServiceError';

  constructor(
    readonly code: ErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

/** The path exists, but not with this method. RFC 9110 section 15.5.6: the response lists the methods that do. */
export class MethodNotAllowedError extends ServiceError {
  override readonly name = 'MethodNotAllowedError';

  constructor(
    method: string,
    path: string,
    readonly allowedMethods: readonly string[],
  ) {
    const allowed = allowedMethods.join(', ');
    super(ErrorCode.methodNotAllowed, `${path} does not take ${method}; it takes ${allowed}.`);
  }
}

/** One address sent too many tokens that were not valid. */
export class TooManyAttemptsError extends ServiceError {
  override readonly name = 'TooManyAttemptsError';

  /** @param retryAfter seconds */
  constructor(readonly retryAfter: number) {
    super(
      ErrorCode.tooManyAttempts,
      `Too many tokens from your address were not valid. Send the request again in ${retryAfter} seconds.`,
    );
  }
}

/** The client is gone: this is not read, and nothing more is done for the request. */
export function connectionClosed(): ServiceError {
  return new ServiceError(
    ErrorCode.badRequest,
    'The connection closed before the body was complete.',
  );
}

/** As much as the service accepts is in flight: the client has to come again. */
export function overloaded(): ServiceError {
  return new ServiceError(
    ErrorCode.overloaded,
    'The service has more work waiting than it accepts. Send the request again in a moment.',
  );
}

/** This process is about to end; the client has to connect to another one. */
export function shuttingDown(): ServiceError {
  return new ServiceError(
    ErrorCode.shuttingDown,
    'This instance of the service is shutting down. Send the request again on a new connection.',
  );
}
