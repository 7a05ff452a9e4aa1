import { ErrorCode } from './error-codes.js';

/**
 * A failure the client is told about: its number, and a sentence that says what is wrong, where,
 * and what to do. Anything else that is thrown is a fault of ours and answered with a constant text.
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

/** The path exists, but not with this method. RFC 9110 section 15.5.6: the answer lists those that do. */
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
