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

/** A body of at most this size is read to its end after the response, so that the connection can be used again. */
const DISCARD_LIMIT_BYTES = 1024 * 1024;

const sentErrors = new WeakMap<ServerResponse, ServiceError>();

export function sentError(response: ServerResponse): ServiceError | undefined {
  return sentErrors.get(response);
}

/** Sends an error as a response: its status, its header fields, and a body as in the schema `Error`. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
): void {
  if (response.headersSent || response.destroyed) {
    // The response has begun: closing the connection shows the client that it is incomplete.
    response.destroy();
    return;
  }
  sentErrors.set(response, error);
  for (const [name, value] of Object.entries({ ...HEADERS_OF[error.code], ...error.headers })) {
    response.setHeader(name, value);
  }
  if (!request.complete) discardBody(request, response);
  const body = JSON.stringify({ error: error.code, message: error.message } satisfies ErrorDto);
  response.statusCode = statusOf(error.code);
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  // Node leaves it out in the response to HEAD.
  response.end(body);
}

/**
 * Reads and discards the rest of a body. If the rest may be long, the response says `Connection: close`, and reading
 * ends when the client has the response, or after REQUEST_TIMEOUT_MS.
 */
function discardBody(request: IncomingMessage, response: ServerResponse): void {
  const { expect, 'content-length': length = 0, 'transfer-encoding': coding } = request.headers;
  // A client that sent `Expect: 100-continue` and gets an error instead of 100 may or may not send the body: the
  // connection cannot be used again (RFC 9110 section 10.1.1).
  const isShort =
    expect === undefined && coding === undefined && Number(length) <= DISCARD_LIMIT_BYTES;
  if (!isShort) response.setHeader('Connection', 'close');
  request.resume();
}
