import { once } from 'node:events';
import { isIPv6, type AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import { Logger } from 'nestjs-pino';
import { AppModule } from './app.module.js';
import { readConfig, type AppConfig, type Config } from './config/config.js';
import { HttpAdapter } from './http/http-adapter.js';
import { LifecycleService } from './http/lifecycle.service.js';
import { refuseAtItsTurn } from './http/pipelining.js';
import { refuseBadRequest } from './http/refuse-bad-request.js';
import { RequestObserver } from './http/request-observer.js';
import { noSniff } from './http/security-headers.js';
import { createLogger } from './logging/logger.js';
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
  const adapter = new HttpAdapter(config.http, () => serveDocument(app, config.baseUrl));
  const app: NestExpressApplication = await NestFactory.create<NestExpressApplication>(
    AppModule.register(config, logger),
    adapter,
    // The body is read behind the guard: see http/json-body.ts.
    { bodyParser: false, abortOnError: false, logger: false },
  );
  const observer = app.get(RequestObserver);
  // What every request meets, in this order, before its route and the guard.
  app.use(
    observer.observe,
    noSniff,
    app.get(LifecycleService).enter,
    refuseBadRequest,
    refuseAtItsTurn,
  );
  await app.init();
  observer.watch(app.getHttpServer());
  // After the start: Nest's messages about its modules and routes are noise in a log.
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
