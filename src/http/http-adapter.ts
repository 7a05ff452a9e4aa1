// Express, as Nest uses it: exact routes, time limits, and an Error for every path and method that no route has.

import { createServer } from 'node:http';
import { StreamableFile } from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import express, { type Application, type NextFunction, type Request, type Response } from 'express';
import type { Config } from '../config/config.js';
import { methodNotAllowed, pathNotFound } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { expressPrototypes } from './express-prototypes.js';
import { BODY_LIMIT_SETTING } from './read-body.js';

/** How often Node looks for requests that exceed their timeouts. */
const TIMEOUT_CHECK_INTERVAL_MS = 500;

export class HttpAdapter extends ExpressAdapter {
  constructor(private readonly config: Config['http']) {
    super(strictExpress(config));
  }

  /** Called by Nest to create the server; only here can the server get our own options. `serveRequests` gives it its listeners. */
  override initHttpServer(): void {
    const server = createServer({
      ...expressPrototypes(this.getInstance<Application>()),
      // A request without Host gets an Error in refuse-bad-request.ts instead.
      requireHostHeader: false,
      // Node would silently use the first of two Authorization or Content-Type fields. Joining them makes the request
      // invalid.
      joinDuplicateHeaders: true,
      keepAliveTimeout: this.config.keepAliveTimeout,
      headersTimeout: this.config.requestTimeout,
      requestTimeout: this.config.requestTimeout,
      connectionsCheckingInterval: TIMEOUT_CHECK_INTERVAL_MS,
    });
    server.maxConnections = this.config.maxConnections;
    // Without a timeout, a client that never reads its response would keep the connection open forever.
    server.timeout = this.config.idleTimeout;
    this.setHttpServer(server);
  }

  /**
   * Called by Nest to send the value that a handler returned. An object is sent as JSON without Express's `send`, which
   * spends time on content types and caching that no object needs.
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

  /** Called by Nest after the routes of all controllers were added. */
  override setNotFoundHandler(): void {
    const app = this.getInstance<Application>();
    app.use((request: Request, _response: Response, next: NextFunction) => {
      next(unmatchedRoute(app.router, request.method, request.path));
    });
  }
}

type Router = Application['router'];

/** A layer of the router, with a method that Express's types lack. */
type Layer = Router['stack'][number] & { match(path: string): boolean };

/** The error for a request that no route accepted: its path is unknown, or known with other methods only. */
function unmatchedRoute(router: Router, method: string, path: string): ServiceError {
  const methods = (router.stack as Layer[])
    .filter((layer) => layer.route !== undefined && layer.match(path))
    .flatMap((layer) => layer.route!.stack.map((handler) => handler.method.toUpperCase()))
    // Express serves HEAD with the route of GET.
    .flatMap((known) => (known === 'GET' ? ['GET', 'HEAD'] : [known]));
  const distinct = [...new Set(methods)];
  return distinct.length === 0 ? pathNotFound() : methodNotAllowed(path, method, distinct);
}

function strictExpress(config: Config['http']): Application {
  const app = express();
  app.enable('strict routing');
  app.enable('case sensitive routing');
  app.disable('x-powered-by');
  // A hash of the metrics and the OpenAPI document at every request would be wasted work.
  app.disable('etag');
  // With 0, X-Forwarded-For is ignored: any client can send it.
  app.set('trust proxy', config.trustedProxyHops);
  app.set(BODY_LIMIT_SETTING, config.bodyLimit);
  return app;
}
