import type { IncomingMessage } from 'node:http';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/** RFC 3986 section 3.2: a name or an address, and perhaps a port. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(:\d*)?$/i;

/**
 * By RFC 9112 section 3.2, an HTTP/1.1 request without Host, or with one that is none, is answered with 400.
 *
 * @throws ServiceError badRequest for those, and for what is not HTTP/1
 */
export function refuseBadHost(request: IncomingMessage): void {
  if (request.httpVersionMajor !== 1) {
    throw new ServiceError(ErrorCode.badRequest, 'The service speaks HTTP/1.1.');
  }
  const { host } = request.headers;
  const isGood = host === undefined ? request.httpVersion !== '1.1' : HOST.test(host);
  if (!isGood) {
    throw new ServiceError(ErrorCode.badRequest, 'The Host header is missing, or not one host.');
  }
}
