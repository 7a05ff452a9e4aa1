import {
  createServer,
  IncomingMessage,
  ServerResponse,
  type RequestListener,
  type Server,
  type ServerOptions,
} from 'node:http';
import type { Socket } from 'node:net';
import { StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Application, type NextFunction, type Request, type Response } from 'express';
import type { Config } from '../config/config.js';
import { ErrorCode, statusOf } from '../errors/error-codes.js';
import { toServiceError } from '../errors/error.filter.js';
import { errorBody, sendError } from '../errors/send-error.js';
import { overloaded, ServiceError } from '../errors/service-error.js';
import { BODY_LIMIT_SETTING } from './json-body.js';
import { linger, lingerAtEnd } from './linger.js';
import { unmatchedRoute } from './unmatched-route.js';

/** How often Node looks for requests that took too long. */
const TIMEOUT_CHECK_INTERVAL_MS = 500;

/** With a property that Node's types leave out. */
type FullServer = Server & { httpAllowHalfOpen: boolean };

/** What Express gives every request and response as its prototype; its types leave it out. */
interface ExpressPrototypes {
  request: object;
  response: object;
}

/** Emitted by the server with the ServiceError it answered to what was no request, or only half of one. */
export const UNPARSED_EVENT = 'unparsed';

/** What the service adds to the adapter. */
interface Additions {
  /**
   * What every request meets before its route is looked for. Not a middleware: for each of those, Express and Nest
   * together take more than a microsecond.
   *
   * @param next hands the request on to Express
   */
  readonly enter: (request: Request, response: Response, next: () => void) => void;
  /**
   * Called when all routes of controllers are known: what is asked for less often comes behind them, for Express
   * tries one after the other.
   */
  readonly addOtherRoutes: () => void;
}

/** Nest's Express adapter with exact routes, and an Error for everything Node and Express answer by themselves. */
export class HttpAdapter extends ExpressAdapter {
  constructor(
    private readonly config: Config['http'],
    private readonly additions: Additions,
  ) {
    super(strictExpress(config));
    // What is there by now is a middleware of Nest's, for its setOnRequestHook(); `enter` is in its place.
    this.getInstance<Application>().router.stack.splice(0);
  }

  /** Called by Nest: the one place where the server can be made with options of our own. */
  override initHttpServer(): void {
    const app = this.getInstance<Application>();
    const server = createServer(
      {
        ...classesOf(app as unknown as ExpressPrototypes),
        // Answered by us instead, as an Error: see refuse-bad-request.ts.
        requireHostHeader: false,
        // A header field sent twice is not silently reduced to the first: a second Authorization or
        // Content-Type makes the field invalid.
        joinDuplicateHeaders: true,
        keepAliveTimeout: this.config.keepAliveTimeout,
        headersTimeout: this.config.requestTimeout,
        requestTimeout: this.config.requestTimeout,
        connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
      },
      oneByOne(app, this.additions),
    );
    server.maxConnections = this.config.maxConnections;
    // A client that does not read its answer is not waited for.
    server.timeout = this.config.idleTimeout;
    // A client that has sent everything may close its side, and still reads its answer.
    (server as FullServer).httpAllowHalfOpen = true;
    server.on('connection', lingerAtEnd);
    answerParserErrors(server);
    this.setHttpServer(server);
    this.httpServer = server;
  }

  /** Called by Nest with what a handler returned. An object is JSON, and needs none of what Express looks up for it. */
  override reply(response: Response, body: unknown, statusCode?: number): unknown {
    if (typeof body !== 'object' || body === null || body instanceof StreamableFile) {
      return super.reply(response, body, statusCode);
    }
    const json = JSON.stringify(body);
    response.statusCode = statusCode ?? response.statusCode;
    response.setHeader('Content-Type', 'application/json; charset=utf-8');
    response.setHeader('Content-Length', Buffer.byteLength(json));
    response.end(json);
    return response;
  }

  /** Called by Nest when all routes are known. */
  override setNotFoundHandler(): void {
    this.additions.addOtherRoutes();
    const app = this.getInstance<Application>();
    app.use((request: Request, _response: Response, next: NextFunction) => {
      next(unmatchedRoute(app.router, request.method, request.path));
    });
  }
}

function strictExpress(config: Config['http']): Application {
  const app = express();
  app.enable('strict routing');
  app.enable('case sensitive routing');
  app.disable('x-powered-by');
  // Hashing every answer is wasted on a POST, which nobody caches.
  app.disable('etag');
  // With 0, X-Forwarded-For is ignored: anyone can send it.
  app.set('trust proxy', config.trustedProxyHops);
  app.set(BODY_LIMIT_SETTING, config.bodyLimit);
  return app;
}

/**
 * Express makes every request and response its own by changing their prototype, after which V8 treats them as
 * slow objects. These are born with the prototype that Express would give them.
 */
function classesOf(
  app: ExpressPrototypes,
): Pick<ServerOptions, 'IncomingMessage' | 'ServerResponse'> {
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse<Of extends IncomingMessage> extends ServerResponse<Of> {}
  app.request = Object.setPrototypeOf(ExpressRequest.prototype, app.request) as object;
  app.response = Object.setPrototypeOf(ExpressResponse.prototype, app.response) as object;
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse };
}

/**
 * Requests that may wait for their turn on one connection. Clients hardly pipeline at all; who sends hundreds of
 * requests and reads no answer wants the answers to fill our memory. One more is refused, and the last.
 */
const MAX_PIPELINED = 16;

/** What is known of a connection. */
interface Connection {
  /** The response to the request that came last. */
  latest: ServerResponse;
  /** Requests that are handled, or wait for their turn; the first is under way. */
  readonly line: (() => void)[];
  /** Why the request that came last cannot be read to its end. */
  broken?: ServiceError;
}

const connections = new WeakMap<Socket, Connection>();

/**
 * Handles the requests of one connection one after the other. Node would hand them over as they come, and a
 * response that waits behind another never learns that its connection closed: whatever was opened for it, and
 * its place among the pending requests, would be lost for good.
 */
function oneByOne(app: Application, { enter }: Additions): RequestListener {
  return (incoming, outgoing) => {
    const request = incoming as Request;
    const response = outgoing as Response;
    const { socket } = request;
    // RFC 9112 section 9.6: nothing that comes behind the last response is handled.
    if (!socket.writable) return;
    let connection = connections.get(socket);
    if (connection === undefined) {
      connection = { latest: response, line: [] };
      connections.set(socket, connection);
    }
    connection.latest = response;
    const { line } = connection;
    if (line.length > MAX_PIPELINED) return;
    const isLast = line.length === MAX_PIPELINED;
    // What is not read any more need not be remembered.
    if (isLast) socket.pause();
    line.push(() => {
      response.on('close', () => {
        line.shift();
        if (socket.writable) line[0]?.();
      });
      const broken = response === connection.latest ? connection.broken : undefined;
      const error = isLast ? overloaded() : broken;
      // Before the request is entered, which may be refused there: nothing comes behind it.
      if (error !== undefined) response.setHeader('Connection', 'close');
      enter(request, response, () => {
        if (error === undefined) app(request, response, giveUp(request, response));
        else sendError(request, response, error);
      });
    });
    if (line.length === 1) line[0]!();
  };
}

/** For what Express cannot even look for a route for, such as `GET http://`; it would answer with a page. */
function giveUp(request: Request, response: Response): NextFunction {
  return (error?: unknown) =>
    sendError(
      request,
      response,
      error === undefined
        ? new ServiceError(ErrorCode.badRequest, 'The target of the request is not a path.')
        : toServiceError(error),
    );
}

/** Errors that Node meets before, or instead of, a request that Express could answer. */
function answerParserErrors(server: Server): void {
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
    afterAnswer(connections.get(socket)?.latest, () => answerRaw(server, socket, error));
  });

  server.on('clientError', (cause: NodeJS.ErrnoException, socket: Socket) => {
    const error = errorOfParser(cause);
    if (!socket.writable) {
      // The connection is gone, or only lingers, and not for ever.
      if (error.code === ErrorCode.requestTimeout) socket.destroy();
      return;
    }
    const connection = connections.get(socket);
    if (connection === undefined) {
      answerRaw(server, socket, error);
      return;
    }
    const answer = connection.latest;
    if (answer.req.complete) {
      // Broken is what came behind a request that is still being answered.
      afterAnswer(answer, () => answerRaw(server, socket, error));
    } else if (answer.headersSent) {
      // The rest of a body whose request has its response already.
      linger(socket);
    } else if (connection.line.length === 1) {
      answer.setHeader('Connection', 'close');
      sendError(answer.req, answer, error);
    } else {
      // It has its turn behind those that came before it.
      connection.broken = error;
    }
  });
}

function afterAnswer(answer: ServerResponse | undefined, action: () => void): void {
  if (answer === undefined || answer.writableFinished) action();
  else answer.once('finish', action);
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

/** Answers on a connection that has no response object, and closes it. */
function answerRaw(server: Server, socket: Socket, error: ServiceError): void {
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
  linger(socket);
}
