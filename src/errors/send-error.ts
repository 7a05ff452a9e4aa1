// The one place that sends an Error as a response.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { ServiceError } from './service-error.js';
import type { ErrorDto } from './error.dto.js';

const sentErrors = new WeakMap<ServerResponse, ServiceError>();

export function sentError(response: ServerResponse): ServiceError | undefined {
  return sentErrors.get(response);
}

/** Sends an error as a response, at once. The rest of the body is read off, so that the connection can be used again. */
export function sendError(
  request: IncomingMessage,
  response: ServerResponse,
  error: ServiceError,
): void {
  // Node reads off a body that nobody has begun to read; this is for one that was read in part.
  request.resume();
  const closes = closesAfter(response);
  const isWritten = writeError(response, error);
  if (!isWritten || request.complete || !closes) response.end();
  // Node closes the connection when the response ends, and a client that still sends then may lose it (RFC 9112 section 9.6).
  else request.once('end', () => response.end());
}

/** Sends an error as a response, also if its request will never arrive. */
export function sendErrorNow(response: ServerResponse, error: ServiceError): void {
  writeError(response, error);
  response.end();
}

/** Whether Node closes the connection after the response, as it does after an Expect that got no 100 Continue. */
function closesAfter(response: ServerResponse): boolean {
  const isExpected = response.req.headers.expect !== undefined;
  return isExpected || !response.shouldKeepAlive || response.getHeader('Connection') === 'close';
}

/** @returns false if the response has begun already, so that the error cannot be sent */
function writeError(response: ServerResponse, error: ServiceError): boolean {
  if (response.headersSent || response.destroyed) {
    // Closing the connection shows the client that the response is incomplete.
    response.destroy();
    return false;
  }
  sentErrors.set(response, error);
  for (const [name, value] of Object.entries(error.headers)) {
    response.setHeader(name, value);
  }
  const body = bodyOf(error);
  response.statusCode = error.status;
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(body));
  // Node leaves it out in the response to HEAD.
  response.write(body);
  return true;
}

/** @returns the JSON of the schema `Error` */
export function bodyOf({ code, message }: ServiceError): string {
  return JSON.stringify({ error: code, message } satisfies ErrorDto);
}
