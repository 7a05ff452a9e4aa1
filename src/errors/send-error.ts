import type { IncomingMessage, ServerResponse } from 'node:http';
import { ErrorCode, statusOf } from './error-codes.js';
import type { ErrorDto } from './error.dto.js';
import { MethodNotAllowedError, TooManyAttemptsError, type ServiceError } from './service-error.js';

/** Seconds after which a client may try again when the service could not do its work. */
const RETRY_AFTER_SECONDS = 1;

/**
 * How much of an unread body is taken off the wire after the answer. Closing at once would reset the
 * connection and could destroy the answer on its way; reading on for ever would let anyone keep us busy.
 */
const DISCARD_LIMIT_BYTES = 1024 * 1024;

const answeredErrors = new WeakMap<ServerResponse, ServiceError>();

/** The error that a request was answered with, if it was. */
export function answeredError(response: ServerResponse): ServiceError | undefined {
  return answeredErrors.get(response);
}

/** Answers with the Error schema and the header fields that belong to the error. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  answeredErrors.set(response, error);
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

function discardBody(request: IncomingMessage, response: ServerResponse): void {
  // A client that asked for permission (100 Continue) and did not get it may send the body or not:
  // the connection cannot be used again (RFC 9110 section 10.1.1).
  if (request.headers.expect !== undefined) {
    response.setHeader('Connection', 'close');
    return;
  }
  // Before the answer ends: Node would otherwise take the rest off the wire itself, without a limit.
  let left = DISCARD_LIMIT_BYTES;
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) request.destroy();
  });
  request.resume();
}
