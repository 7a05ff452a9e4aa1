import { once } from 'node:events';
import { isIPv6, Server as NetServer, type AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import { Logger } from 'nestjs-pino';
import { AppModule, type AppConfig } from './app.module.js';
import { readConfig, type Config } from './config/config.js';
import { toServiceError } from './errors/error.filter.js';
import { sendError } from './errors/send-error.js';
import type { ServiceError } from './errors/service-error.js';
import { acceptWaiting } from './http/accept-waiting.js';
import { refuseBadRequest } from './http/refuse-bad-request.js';
import { RequestObserver } from './http/request-observer.js';
import { createLogger } from './logging/logger.js';
import { HttpAdapter, UNPARSED_EVENT } from './http/http-adapter.js';
import { LifecycleService } from './http/lifecycle.service.js';
import { buildDocument } from './openapi/document.js';
import { serveDocument } from './openapi/serve-document.js';

/**
 * Builds the service: the one way to do so, for production and tests alike.
 *
 * @param config with the address of a database whose schema is up to date
 * @returns the application, initialised and not yet listening
 */
export async function createApp(
  config: AppConfig,
  logger = createLogger(config.log),
): Promise<NestExpressApplication> {
  const adapter = new HttpAdapter(config.http, {
    enter: (request, response, next) => {
      try {
        observer.observe(request, response, () => {
          response.setHeader('X-Content-Type-Options', 'nosniff');
          lifecycle.enter(response);
          refuseBadRequest(request);
          next();
        });
      } catch (error) {
        sendError(request, response, toServiceError(error));
      }
    },
    addOtherRoutes: () => serveDocument(app, config.baseUrl),
  });
  const app: NestExpressApplication = await NestFactory.create<NestExpressApplication>(
    AppModule.register(config, logger),
    adapter,
    // The body is read behind the guard: see http/json-body.ts.
    { bodyParser: false, abortOnError: false, logger: false },
  );
  const observer = app.get(RequestObserver);
  const lifecycle = app.get(LifecycleService);
  await app.init();
  app
    .getHttpServer()
    .on(UNPARSED_EVENT, (error: ServiceError) => observer.observeUnparsed(error))
    .on('drop', () => observer.observeDrop());
  // After the start: what Nest tells of its modules and routes helps nobody who reads a log.
  app.useLogger(app.get(Logger));
  return app;
}

/** The document of the service as it is committed, without starting anything: no database is needed. */
export async function describeApp(): Promise<OpenAPIObject> {
  const config = readConfig({});
  const database = { ...config.database, url: '' };
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.register({ ...config, database }, createLogger({ level: 'silent' })),
    { preview: true, logger: false },
  );
  return buildDocument(app);
}

interface Address extends Pick<Config['http'], 'host' | 'port'> {
  /** Lets several processes listen on the address; the system spreads connections over them. */
  readonly reusePort?: boolean;
}

/**
 * Opens the service to clients.
 *
 * @returns the address it listens on
 * @throws the error of the socket, such as EADDRINUSE
 */
export async function listen(
  app: NestExpressApplication,
  { host, port, reusePort = false }: Address,
): Promise<string> {
  // Not app.listen(): it prints a stack trace for a port that is taken.
  const server = app.getHttpServer();
  await once(server.listen({ host, port, reusePort }), 'listening');
  return urlOf(server.address() as AddressInfo);
}

/** An address that a client on this machine can use. */
function urlOf({ address, port }: AddressInfo): string {
  switch (address) {
    case '0.0.0.0':
      return `http://127.0.0.1:${port}`;
    case '::':
      return `http://[::1]:${port}`;
    default:
      return `http://${isIPv6(address) ? `[${address}]` : address}:${port}`;
  }
}

/** How long a connection may stay idle after the listener closed: a request may be under way on it. */
const IDLE_GRACE_MS = 1000;

/** How long the connections to the database may take to close. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * Stops the service without losing a request: readiness falls, after a delay nothing new is accepted,
 * requests in flight are answered and their connections closed, then the database is let go.
 *
 * The delay is there for load balancers to notice; after it and the time-out, in milliseconds, what is
 * still in flight is refused and cut.
 */
export async function stopApp(
  app: NestExpressApplication,
  { shutdownDelay, shutdownTimeout }: Pick<Config['http'], 'shutdownDelay' | 'shutdownTimeout'>,
): Promise<void> {
  const lifecycle = app.get(LifecycleService);
  const server = app.getHttpServer();
  lifecycle.drain();
  if (shutdownDelay > 0) await delay(shutdownDelay);
  await acceptWaiting(server);
  // Of net, not of http: that one would cut idle connections at once, requests on their way included.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(server, () => resolve());
  });
  const idle = setTimeout(() => server.closeIdleConnections(), IDLE_GRACE_MS);
  const deadline = setTimeout(() => {
    lifecycle.stop();
    // In the next turn of the event loop: the refusals are on their way by then.
    setImmediate(() => server.closeAllConnections());
  }, shutdownTimeout);
  await closed;
  clearTimeout(idle);
  clearTimeout(deadline);
  lifecycle.stop();
  // A server that is frozen never says good-bye to its connections.
  await Promise.race([app.close(), delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
}
