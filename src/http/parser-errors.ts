import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { ErrorCode, statusOf } from '../errors/error-codes.js';
import { errorBody, sendError } from '../errors/send-error.js';
import { ServiceError } from '../errors/service-error.js';
import { connectionOf } from './pipelining.js';
import { UNPARSED_EVENT } from './unparsed-event.js';

/** Sends an Error for what Node meets before, or instead of, a request that Express could handle. */
export function respondToParserErrors(server: Server): void {
  // The body is asked for where it is read; until then this is a request like any other.
  server.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => {
    // Node looks for the word anywhere in the field.
    const isUnderstood = request.headers.expect?.toLowerCase() === '100-continue';
    server.emit(isUnderstood ? 'request' : 'checkExpectation', request, response);
  });

  server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) => {
    const error = new ServiceError(
      ErrorCode.expectationFailed,
      'Only Expect: 100-continue is understood.',
    );
    server.emit(UNPARSED_EVENT, error);
    sendError(request, response, error);
  });

  // An authority (RFC 9110 section 9.3.6) is never one of our paths, and Node would just hang up.
  server.on('connect', (_request: IncomingMessage, socket: Socket) => {
    // Node has let go of this socket: without a listener, a reset would end the process.
    socket.on('error', () => socket.destroy());
    const error = new ServiceError(ErrorCode.pathNotFound, 'This service is not a proxy.');
    afterResponse(connectionOf(socket)?.latest, () => sendRaw(server, socket, error));
  });

  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    const error = errorOfParser(cause);
    // The connection is gone, or only lingers.
    if (!socket.writable) return;
    const connection = connectionOf(socket);
    if (connection === undefined) {
      sendRaw(server, socket, error);
      return;
    }
    const { latest } = connection;
    if (latest.req.complete) {
      // What is broken came behind a request that still waits for its response.
      afterResponse(latest, () => sendRaw(server, socket, error));
    } else if (latest.headersSent) {
      // The rest of a body whose request has its response already.
      socket.destroySoon();
    } else if (connection.turns.length === 1) {
      latest.setHeader('Connection', 'close');
      sendError(latest.req, latest, error);
    } else {
      // It has its turn behind the requests that came before it.
      connection.broken = error;
    }
  });
}

function afterResponse(response: ServerResponse | undefined, action: () => void): void {
  if (response === undefined || response.writableFinished) action();
  else response.once('finish', action);
}

function errorOfParser(error: NodeJS.ErrnoException): ServiceError {
  switch (error.code) {
    case 'HPE_HEADER_OVERFLOW':
      return new ServiceError(ErrorCode.headersTooLarge, 'The header fields are too large.');
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return new ServiceError(ErrorCode.requestTimeout, 'The request did not arrive in time.');
    default:
      return new ServiceError(ErrorCode.badRequest, 'The request is not valid HTTP.');
  }
}

const REASONS: Readonly<Record<number, string>> = {
  400: 'Bad Request',
  404: 'Not Found',
  408: 'Request Timeout',
  431: 'Request Header Fields Too Large',
};

/** Sends an Error on a connection that has no response object, and closes it. */
function sendRaw(server: Server, socket: Socket, error: ServiceError): void {
  if (!socket.writable) return;
  server.emit(UNPARSED_EVENT, error);
  const status = statusOf(error.code);
  const body = errorBody(error);
  socket.write(
    [
      `HTTP/1.1 ${status} ${REASONS[status]}`,
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
  // Only as soon as the client has it: see linger.ts.
  socket.destroySoon();
}
