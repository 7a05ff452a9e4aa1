// The events of Node's server: a request, also one that waits for 100 Continue, and what its HTTP parser refuses.

import { STATUS_CODES, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Application, Request, Response } from 'express';
import { badRequest, headersTooLarge, invalidHttp, requestTimeout } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { bodyOf, sendErrorNow } from '../errors/send-error.js';
import type { LifecycleService } from './lifecycle.service.js';
import type { RequestObserver } from './request-observer.js';
import { whenClosed } from './when-closed.js';

/**
 * Handles the requests of a server with an app. Node starts pipelined requests at once, and sends their responses in order.
 * Whatever its parser refuses gets an Error, too.
 */
export function serveRequests(
  server: Server,
  app: Application,
  observer: RequestObserver,
  lifecycle: LifecycleService,
): void {
  const handle = (incoming: IncomingMessage, outgoing: ServerResponse) => {
    const request = incoming as Request;
    const response = outgoing as Response;
    // Called only for a target without a path, such as `GET http://`, which reaches no middleware.
    app(request, response, () => {
      observer.observe(request, response, () => sendErrorNow(response, noPath()));
    });
  };
  server.on('request', handle);
  // Without these listeners, Node would send 100 Continue before the token is checked, and 417 without an Error.
  server.on('checkContinue', handle);
  server.on('checkExpectation', handle);
  const refused = new WeakSet<Socket>();
  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    // The last response was sent already, or the client has gone. Node reports each further packet of a client as an error, too.
    if (!socket.writable || refused.has(socket)) return;
    refused.add(socket);
    // The client has closed its side in the middle of a request: it has given up.
    if (cause.code === 'HPE_INVALID_EOF_STATE') socket.destroy();
    else refuse(socket, lifecycle.latestOf(socket), errorOf(cause), observer);
  });
  server.on('drop', observer.countDrop);
}

/**
 * Ends a connection on which Node's parser reads no further request.
 *
 * @param latest the response to its latest request
 */
function refuse(
  socket: Socket,
  latest: ServerResponse | undefined,
  error: ServiceError,
  observer: RequestObserver,
): void {
  if (latest === undefined || (latest.closed && latest.req.complete)) {
    socket.write(rawResponse(error, observer.logUnparsed(error)));
    socket.destroySoon();
  } else if (latest.req.complete || latest.headersSent) {
    // The latest request is complete, or has its response although its body is broken. All open responses are sent first.
    if (!latest.headersSent) latest.setHeader('Connection', 'close');
    // It may wait for the end of its body: see send-error.ts.
    else latest.end();
    whenClosed(latest, () => socket.destroySoon());
  } else {
    // The error is in the body of this request.
    latest.setHeader('Connection', 'close');
    sendErrorNow(latest, error);
  }
}

function errorOf({ code }: NodeJS.ErrnoException): ServiceError {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return headersTooLarge();
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return requestTimeout();
    default:
      return invalidHttp();
  }
}

function noPath(): ServiceError {
  return badRequest('The target of the request is not a path.');
}

/** The last response of a connection, to what is no request. */
function rawResponse(error: ServiceError, requestId: string): string {
  const status = error.status;
  const body = bodyOf(error);
  return [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    `X-Request-Id: ${requestId}`,
    'X-Content-Type-Options: nosniff',
    'Connection: close',
    '',
    body,
  ].join('\r\n');
}
