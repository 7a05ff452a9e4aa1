import { applyDecorators } from '@nestjs/common';
import {
  databaseUnavailable,
  internal,
  invalidHttp,
  issuerUnavailable,
  overloaded,
  type ServiceError,
  shuttingDown,
  tokenInvalid,
  tokenMissing,
  tooManyAttempts,
} from '../errors/service-error.js';
import { errorResponse } from '../openapi/error-response.js';
import { headers } from '../openapi/headers.js';

/**
 * The errors of every operation that takes a token and uses the database.
 *
 * @param badRequests the examples of 400, besides that of malformed HTTP, which may be a request to any operation
 */
export function CommonResponses(...badRequests: ServiceError[]): MethodDecorator {
  return applyDecorators(
    errorResponse(400, 'The request failed', headers('X-Request-Id'), [
      invalidHttp(),
      ...badRequests,
    ]),
    errorResponse(
      401,
      'The bearer token is missing or not valid',
      headers('X-Request-Id', 'WWW-Authenticate'),
      [tokenMissing(), tokenInvalid()],
    ),
    errorResponse(
      429,
      'Too many tokens from this address were not valid',
      headers('X-Request-Id', 'Retry-After'),
      [tooManyAttempts(60)],
    ),
    errorResponse(
      500,
      'A fault of the service; sending the same request again is safe',
      headers('X-Request-Id'),
      [internal()],
    ),
    errorResponse(
      503,
      'The service cannot do its work now; sending the same request again is safe',
      headers('X-Request-Id', 'Retry-After'),
      [databaseUnavailable(), overloaded(), shuttingDown(), issuerUnavailable()],
    ),
  );
}
