// For clients that send their body with its header in one packet, as nearly all do, or later and in chunks, as Go and fetch
// send a stream.

import type { Request, Response } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { connectionClosed, ServiceError } from '../errors/service-error.js';
import type { CountBytes, PendingBodies } from './pending-bodies.js';
import { whenClosed } from './when-closed.js';

/** The Express setting that holds a PendingBodies: a parameter decorator cannot inject it. */
export const PENDING_BODIES_SETTING = 'pending bodies';

/**
 * Reads the body of a request. One that has arrived already is read without listeners and without a promise.
 *
 * @throws ServiceError bodyTooLarge as soon as more than `BODY_LIMIT` is announced or has arrived; overloaded as soon as all
 *   bodies in flight would be too large together; connectionClosed
 */
export function readBody(request: Request, response: Response): Buffer | Promise<Buffer> {
  const bodies = request.app.get(PENDING_BODIES_SETTING) as PendingBodies;
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > bodies.limit) throw bodyTooLarge(bodies.limit);
  bodies.check(announced);
  const count = bodies.open(response);
  return hasArrived(request)
    ? takeBody(request, bodies.limit, count)
    : receiveBody(request, response, bodies.limit, count);
}

/** RFC 9112 section 6.3: without Transfer-Encoding and Content-Length, a request has no body. */
export function announcesBody({ headers }: Request): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0;
}

/** A body that arrived with the header is in the buffer, although Node has not set `complete` yet. */
function hasArrived(request: Request): boolean {
  return request.complete || request.readableLength === Number(request.headers['content-length']);
}

function takeBody(request: Request, limit: number, count: CountBytes): Buffer {
  const length = request.readableLength;
  if (length > limit) throw bodyTooLarge(limit);
  count(length);
  // Since Node 26, read() without a length returns only the first of several chunks.
  return (request.read(length) as Buffer | null) ?? Buffer.alloc(0);
}

function receiveBody(
  request: Request,
  response: Response,
  limit: number,
  count: CountBytes,
): Promise<Buffer> {
  // RFC 9110 section 10.1.1: the client waits for permission to send its body; HTTP/1.0 does not know this exchange.
  if (request.headers.expect !== undefined && request.httpVersion === '1.1') {
    response.writeContinue();
  }
  return new Promise((resolve, reject) => {
    let body: Buffer = Buffer.alloc(0);
    let size = 0;
    const settle = (action: () => void) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose);
      action();
    };
    const onData = (chunk: Buffer) => {
      size += chunk.length;
      try {
        if (size > limit) throw bodyTooLarge(limit);
        count(chunk.length);
        body = append(body, size, chunk, limit);
      } catch (error) {
        const refusal = error as ServiceError;
        request.pause();
        settle(() => reject(refusal));
      }
    };
    const onEnd = () => settle(() => resolve(body.subarray(0, size)));
    const onClose = () => settle(() => reject(connectionClosed()));
    request.on('data', onData).on('end', onEnd);
    whenClosed(request, onClose);
  });
}

/**
 * Appends a chunk to a body. A list of chunks would take much more memory than the body, if they are small.
 *
 * @param size of the body with this chunk, in bytes
 * @param limit the most bytes that the body can have
 * @returns a buffer that begins with the body, and may be longer
 */
function append(body: Buffer, size: number, chunk: Buffer, limit: number): Buffer {
  const start = size - chunk.length;
  if (start === 0) return chunk;
  let appended = body;
  if (body.length < size) {
    appended = Buffer.allocUnsafeSlow(Math.min(2 * size, limit));
    body.copy(appended, 0, 0, start);
  }
  chunk.copy(appended, start);
  return appended;
}

/** @param limit bytes */
export function bodyTooLarge(limit: number): ServiceError {
  return new ServiceError(ErrorCode.bodyTooLarge, `The body is larger than ${limit} bytes.`);
}
