// Refuses what Node accepts although RFC 9110 or RFC 9112 forbid it, or what the service does not do.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { badRequest, expectationFailed } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';

/** A middleware that refuses such a request before its route is known. */
export function refuseBadRequest(
  request: IncomingMessage,
  _response: ServerResponse,
  next: (error?: ServiceError) => void,
): void {
  next(problemOf(request));
}

function problemOf({ httpVersion, headers }: IncomingMessage): ServiceError | undefined {
  const { host, expect, 'transfer-encoding': coding } = headers;
  if (httpVersion === '1.1') {
    // RFC 9112 section 3.2.
    if (host === undefined) {
      return badRequest('The header Host is missing.');
    }
    // RFC 9110 section 10.1.1; HTTP/1.0 does not know this field.
    if (expect !== undefined && expect.toLowerCase() !== '100-continue') {
      return expectationFailed();
    }
  }
  // RFC 9112 section 6.1: the bytes of another coding would be taken for JSON.
  if (coding !== undefined && coding.toLowerCase() !== 'chunked') {
    return badRequest(
      'The body is in a transfer coding that the service does not know: send it plain, or with Transfer-Encoding: chunked.',
    );
  }
  return undefined;
}
