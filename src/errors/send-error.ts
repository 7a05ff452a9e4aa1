import type { IncomingMessage, ServerResponse } from 'node:http';
import { ErrorCode, statusOf } from './error-codes.js';
import type { ErrorDto } from './error.dto.js';
import { MethodNotAllowedError, TooManyAttemptsError, type ServiceError } from './service-error.js';

/** Seconds after which a client may try again when the service could not do its work. */
const RETRY_AFTER_SECONDS = 1;

/** The rest of a body up to this size is read after the response, so that the connection can be used again. */
const DISCARD_LIMIT_BYTES = 1024 * 1024;

const sentErrors = new WeakMap<ServerResponse, ServiceError>();

/** The error that was sent to the client of a request, if one was. */
export function sentError(response: ServerResponse): ServiceError | undefined {
  return sentErrors.get(response);
}

/** Sends the Error schema and the header fields that belong to the error. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  sentErrors.set(response, error);
  for (const [name, value] of Object.entries(errorHeaders(error))) {
    response.setHeader(name, value);
  }
  if (!request.complete) {
    discardBody(request, response);
  }
  const body = errorBody(error);
  response.statusCode = statusOf(error.code);
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(request.method === 'HEAD' ? undefined : body);
}

/** The Error schema as JSON. */
export function errorBody(error: ServiceError): string {
  return JSON.stringify({ error: error.code, message: error.message } satisfies ErrorDto);
}

function errorHeaders(error: ServiceError): Record<string, string> {
  switch (error.code) {
    // RFC 6750 section 3: no error attribute when the request carried no token at all.
    case ErrorCode.tokenMissing:
      return { 'WWW-Authenticate': 'Bearer realm="plant-store"' };
    case ErrorCode.tokenInvalid:
      return { 'WWW-Authenticate': 'Bearer realm="plant-store", error="invalid_token"' };
    case ErrorCode.methodNotAllowed:
      return error instanceof MethodNotAllowedError
        ? { Allow: error.allowedMethods.join(', ') }
        : {};
    case ErrorCode.tooManyAttempts:
      return error instanceof TooManyAttemptsError
        ? { 'Retry-After': String(error.retryAfter) }
        : {};
    case ErrorCode.issuerUnavailable:
    case ErrorCode.databaseUnavailable:
    case ErrorCode.overloaded:
      return { 'Retry-After': String(RETRY_AFTER_SECONDS) };
    case ErrorCode.shuttingDown:
    case ErrorCode.requestTimeout:
      return { Connection: 'close' };
    default:
      return {};
  }
}

/**
 * Reads the rest of a body that nobody asks for any more. If it may be long, the response says `Connection: close`, and
 * it is read until the client has the response, or for REQUEST_TIMEOUT_MS.
 */
function discardBody(request: IncomingMessage, response: ServerResponse): void {
  const { expect, 'content-length': length } = request.headers;
  // A client that asked for permission (100 Continue) and did not get it may send the body or not: the connection
  // cannot be used again (RFC 9110 section 10.1.1).
  const isShort =
    expect === undefined && length !== undefined && Number(length) <= DISCARD_LIMIT_BYTES;
  if (!isShort) response.setHeader('Connection', 'close');
  request.resume();
}
