import { createServer, type Server } from 'node:http';
import { StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Application, type NextFunction, type Request, type Response } from 'express';
import type { Config } from '../config/config.js';
import { classesOf } from './express-classes.js';
import { BODY_LIMIT_SETTING } from './read-body.js';
import { lingerAtEnd } from './linger.js';
import { respondToParserErrors } from './parser-errors.js';
import { handleInTurn } from './pipelining.js';
import { unmatchedRoute } from './unmatched-route.js';

/** How often Node looks for requests that took too long. */
const TIMEOUT_CHECK_INTERVAL_MS = 500;

/** With a property that Node's types leave out. */
type FullServer = Server & { httpAllowHalfOpen: boolean };

/** Nest's Express adapter with exact routes, and an Error for everything that Node and Express refuse by themselves. */
export class HttpAdapter extends ExpressAdapter {
  /**
   * @param addOtherRoutes called when all routes of controllers are known: Express tries one route after the other, so
   *   those that are asked for less often come last
   */
  constructor(
    private readonly config: Config['http'],
    private readonly addOtherRoutes: () => void,
  ) {
    super(strictExpress(config));
  }

  /** Called by Nest: the one place where the server can be made with options of our own. */
  override initHttpServer(): void {
    const app = this.getInstance<Application>();
    const server = createServer({
      ...classesOf(app),
      // Refused by us instead, with an Error: see refuse-bad-request.ts.
      requireHostHeader: false,
      // A header field sent twice is not silently reduced to the first: a second Authorization or
      // Content-Type makes the field invalid.
      joinDuplicateHeaders: true,
      keepAliveTimeout: this.config.keepAliveTimeout,
      headersTimeout: this.config.requestTimeout,
      requestTimeout: this.config.requestTimeout,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    });
    server.maxConnections = this.config.maxConnections;
    // A client that does not read its response is not waited for.
    server.timeout = this.config.idleTimeout;
    // A client that has sent everything may close its side, and still reads its response.
    (server as FullServer).httpAllowHalfOpen = true;
    lingerAtEnd(server, this.config.requestTimeout);
    server.on('request', handleInTurn(app, server));
    respondToParserErrors(server);
    this.setHttpServer(server);
    this.httpServer = server;
  }

  /**
   * Called by Nest with what a handler returned. An object is JSON, and needs none of what Express's `send` looks up
   * for it.
   */
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
    this.addOtherRoutes();
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
  // Hashing every response is wasted on a POST, which nobody caches.
  app.disable('etag');
  // With 0, X-Forwarded-For is ignored: anyone can send it.
  app.set('trust proxy', config.trustedProxyHops);
  app.set(BODY_LIMIT_SETTING, config.bodyLimit);
  return app;
}
