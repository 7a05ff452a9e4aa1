// The one place that sends an Error as a response.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { ErrorCode, statusOf } from './error-codes.js';
import type { ErrorDto } from './error.dto.js';
import type { ServiceError } from './service-error.js';

type Headers = Readonly<Record<string, string>>;

const RETRY_IN_A_SECOND: Headers = { 'Retry-After': '1' };
const CLOSE: Headers = { Connection: 'close' };

const HEADERS_OF: { readonly [Code in ErrorCode]?: Headers } = {
  // RFC 6750 section 3: no error attribute when the request carried no token at all.
  [ErrorCode.tokenMissing]: { 'WWW-Authenticate': 'Bearer realm="plant-store"' },
  [ErrorCode.tokenInvalid]: {
    'WWW-Authenticate': 'Bearer realm="plant-store", error="invalid_token"',
  },
  [ErrorCode.databaseUnavailable]: RETRY_IN_A_SECOND,
  [ErrorCode.issuerUnavailable]: RETRY_IN_A_SECOND,
  [ErrorCode.overloaded]: RETRY_IN_A_SECOND,
  [ErrorCode.requestTimeout]: CLOSE,
  [ErrorCode.shuttingDown]: CLOSE,
};

const sentErrors = new WeakMap<ServerResponse, ServiceError>();

export function sentError(response: ServerResponse): ServiceError | undefined {
  return sentErrors.get(response);
}

/**
 * Sends an error as a response. The rest of the body is read off, so that the connection can be used again. If the connection
 * closes after the response, the body is read off first: a client that still sends when it is closed may lose the response
 * (RFC 9112 section 9.6).
 */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
): void {
  // Node reads off a body that nobody has begun to read; this is for one that was read in part.
  request.resume();
  if (request.complete || !closesAfter(response)) sendErrorNow(response, error);
  else request.once('end', () => sendErrorNow(response, error));
}

/** A client with an Expect may wait for this response before it sends its body. */
function closesAfter(response: ServerResponse): boolean {
  if (response.req.headers.expect !== undefined) return false;
  return !response.shouldKeepAlive || response.getHeader('Connection') === 'close';
}

/** Sends an error as a response, also if its request has not arrived yet. */
export function sendErrorNow(response: ServerResponse, error: ServiceError): void {
  if (response.headersSent || response.destroyed) {
    // The response has begun: closing the connection shows the client that it is incomplete.
    response.destroy();
    return;
  }
  sentErrors.set(response, error);
  for (const [name, value] of Object.entries({ ...HEADERS_OF[error.code], ...error.headers })) {
    response.setHeader(name, value);
  }
  const body = bodyOf(error);
  response.statusCode = statusOf(error.code);
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  // Node leaves it out in the response to HEAD.
  response.end(body);
}

/** @returns the JSON of the schema `Error` */
export function bodyOf({ code, message }: ServiceError): string {
  return JSON.stringify({ error: code, message } satisfies ErrorDto);
}
