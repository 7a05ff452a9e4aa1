// For scripts that write HTTP by hand, and for clients that compress on the way.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/** RFC 3986 section 3.2: a name or an address, and an optional port. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(:\d*)?$/i;

/**
 * A middleware that refuses requests which Node accepts although RFC 9112 forbids them. These are HTTP/1.1 without a valid Host
 * (section 3.2), another version, whose client would not understand the response, and a body in a transfer coding other than
 * chunked, whose bytes would be taken for JSON (section 6.1).
 */
export function refuseBadRequest(
  request: IncomingMessage,
  _response: ServerResponse,
  next: (error?: ServiceError) => void,
): void {
  const problem = problemOf(request);
  next(problem === undefined ? undefined : new ServiceError(ErrorCode.badRequest, problem));
}

function problemOf(request: IncomingMessage): string | undefined {
  if (request.httpVersionMajor !== 1) return 'The service speaks HTTP/1.1.';
  const { host, 'transfer-encoding': transferCoding } = request.headers;
  const isHostValid = host === undefined ? request.httpVersion !== '1.1' : HOST.test(host);
  if (!isHostValid) return 'The Host header is missing or not valid.';
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    return 'The body is in a transfer coding that the service does not know: send it plain, or with Transfer-Encoding: chunked.';
  }
  return undefined;
}
