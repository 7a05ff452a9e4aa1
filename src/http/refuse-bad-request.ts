import type { IncomingMessage } from 'node:http';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

/** RFC 3986 section 3.2: a name or an address, and perhaps a port. */
const HOST = /^(\[[0-9a-f:.]+\]|[\w.~!$&'()*+;=%-]*)(:\d*)?$/i;

/**
 * Refuses what Node lets through, and RFC 9112 does not: an HTTP/1.1 request without Host, or with one that is none
 * (section 3.2), and a body in a transfer coding other than chunked, which would be taken for plain (section 6.1).
 *
 * @throws ServiceError badRequest for those, and for what is not HTTP/1
 */
export function refuseBadRequest(request: IncomingMessage): void {
  if (request.httpVersionMajor !== 1) {
    throw new ServiceError(ErrorCode.badRequest, 'The service speaks HTTP/1.1.');
  }
  const { host, 'transfer-encoding': transferCoding } = request.headers;
  const isGood = host === undefined ? request.httpVersion !== '1.1' : HOST.test(host);
  if (!isGood) {
    throw new ServiceError(ErrorCode.badRequest, 'The Host header is missing, or not one host.');
  }
  if (transferCoding !== undefined && transferCoding.toLowerCase() !== 'chunked') {
    throw new ServiceError(
      ErrorCode.badRequest,
      'The body is in a transfer coding that the service does not know: send it plain, or with Transfer-Encoding: chunked.',
    );
  }
}
