// For clients whose request is no HTTP, does not arrive in time or expects what the service does not do.

import { IncomingMessage, ServerResponse, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { ErrorCode } from '../errors/error-codes.js';
import { sendError } from '../errors/send-error.js';
import { invalidHttp, overloaded, ServiceError } from '../errors/service-error.js';
import { discardInput } from './discard-input.js';
import { connectionOf } from './pipelining.js';
import { sendUnparsed } from './request-observer.js';

/** Node's code of the error for a request that does not arrive within `REQUEST_TIMEOUT_MS`. */
const REQUEST_TIMEOUT = 'ERR_HTTP_REQUEST_TIMEOUT';

/** Sends an Error wherever Node would respond by itself or only close the connection. */
export function respondToParserErrors(server: Server): void {
  // For curl with a body of more than 1 MiB, and .NET Framework. Without this listener, Node would send 100 Continue at once;
  // here, read-body.ts sends it when it reads the body.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node emits this event for every Expect field that contains "100-continue", even if it contains more.
    const isUnderstood = request.headers.expect!.toLowerCase() === '100-continue';
    server.emit(isUnderstood ? 'request' : 'checkExpectation', request, response);
  });

  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const error = new ServiceError(
      ErrorCode.expectationFailed,
      'Only Expect: 100-continue is understood.',
    );
    // It may be pipelined: see pipelining.ts.
    server.emit('request', request, response, error);
  });

  // For clients that have the service in HTTPS_PROXY. The target of CONNECT is a host (RFC 9110 section 9.3.6), never one of our
  // paths. Without this listener, Node would close the connection without a response.
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    // Node has removed its own listeners from this socket: without new ones, a reset would end the process, and a client that does
    // not read would keep its connection.
    socket.on('error', () => undefined);
    socket.on('timeout', () => socket.destroy());
    const error = new ServiceError(ErrorCode.pathNotFound, 'This service is not a proxy.');
    sendRaw(server, socket, error);
  });

  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    // The last response was sent already, or the connection is closed.
    if (!socket.writable) return;
    // Node stops reading while the service does not read a large body: its client is not late.
    const isUnread = cause.code === REQUEST_TIMEOUT && socket.isPaused();
    const error = isUnread ? overloaded() : errorOfParser(cause);
    // Requests after this error get no response.
    discardInput(socket);
    const connection = connectionOf(socket);
    if (connection === undefined || connection.latest.req.complete) {
      sendRaw(server, socket, error);
      return;
    }
    // The error is in the body of this request.
    const { latest } = connection;
    if (latest !== connection.current) {
      // It may have been refused already, because too many requests of its connection wait.
      connection.refusal ??= error;
    } else if (latest.headersSent) {
      socket.destroySoon();
    } else {
      latest.setHeader('Connection', 'close');
      sendError(latest.req, latest, error);
    }
  });
}

function errorOfParser(error: NodeJS.ErrnoException): ServiceError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ServiceError(ErrorCode.headersTooLarge, 'The header fields are too large.');
    case REQUEST_TIMEOUT:
      return new ServiceError(ErrorCode.requestTimeout, 'The request did not arrive in time.');
    default:
      return invalidHttp();
  }
}

/** Sends an Error that belongs to no request, after the responses to the requests before it, and closes the connection. */
function sendRaw(server: Server, socket: Socket, error: ServiceError): void {
  const latest = connectionOf(socket)?.latest;
  if (latest !== undefined && !latest.writableFinished) {
    latest.once('finish', () => sendRaw(server, socket, error));
    return;
  }
  if (!socket.writable) return;
  const request = new IncomingMessage(socket);
  const response = new ServerResponse(request);
  response.setHeader('Connection', 'close');
  response.assignSocket(socket);
  sendUnparsed(server, response, error);
  // Waits until the client has read the response: see linger.ts.
  socket.destroySoon();
}
