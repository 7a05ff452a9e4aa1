// Builds the app, and opens it to clients.

import { once } from 'node:events';
import { isIPv6, type AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { OpenAPIObject } from '@nestjs/swagger';
import { AppModule } from './app.module.js';
import { readConfig, type AppConfig } from './config/config.js';
import { allowOrigins, respondToPreflight } from './http/cors.js';
import { HttpAdapter } from './http/http-adapter.js';
import { LifecycleService } from './http/lifecycle.service.js';
import { refuseBadRequest } from './http/refuse-bad-request.js';
import { RequestObserver } from './http/request-observer.js';
import { serveRequests } from './http/serve-requests.js';
import { createLogger } from './logging/logger.js';
import { buildDocument } from './openapi/document.js';
import { redirectBrowser, serveDocument } from './openapi/serve-document.js';
import { API_DESCRIPTION } from './plants/api-description.js';

/**
 * Builds the service. Production and tests build it with this function and no other.
 *
 * @param config with the address of a database whose schema is up to date
 * @returns the application, initialized and not yet listening
 */
export async function createApp(
  config: AppConfig,
  logger = createLogger(config.log),
): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.register(config, logger),
    new HttpAdapter(config.http),
    // The body is read after the guard: see http/json-body.ts. Nest's messages about its modules and routes are noise in a log.
    { bodyParser: false, abortOnError: false, logger: false },
  );
  const observer = app.get(RequestObserver);
  const lifecycle = app.get(LifecycleService);
  const { corsOrigins } = config.http;
  // These middlewares run for every request with a path, in this order, before the route and its guard (app.module.ts).
  app.use(
    observer.observe,
    ...(corsOrigins.length === 0 ? [] : [allowOrigins(corsOrigins)]),
    lifecycle.enter,
    respondToPreflight,
    refuseBadRequest,
    redirectBrowser,
  );
  // Before `init`, which ends the list of routes with the error for an unknown path.
  serveDocument(app, API_DESCRIPTION, config.baseUrl);
  await app.init();
  serveRequests(app.getHttpServer(), app.getHttpAdapter().getInstance(), observer, lifecycle);
  return app;
}

/**
 * Builds the OpenAPI document without a server and without a database.
 *
 * @returns the document; its server variable `base_url` has the address of a service with default settings
 */
export async function describeApp(): Promise<OpenAPIObject> {
  const config = readConfig({});
  const database = { ...config.database, url: '' };
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.register({ ...config, database }, createLogger({ level: 'silent' })),
    // Nest reads the modules and creates no instances, so no database is needed.
    { preview: true, logger: false },
  );
  return buildDocument(app, API_DESCRIPTION, `http://${config.http.host}:${config.http.port}`);
}

/**
 * Opens the service to clients.
 *
 * @returns the URL at which a client on this machine reaches the service
 * @throws the error of the socket, such as EADDRINUSE
 */
export async function listen(
  app: NestExpressApplication,
  { host, port }: { host: string; port: number },
): Promise<string> {
  // app.listen() would print a stack trace for a port that is taken.
  const server = app.getHttpServer();
  await once(server.listen({ host, port }), 'listening');
  const { address, port: opened } = server.address() as AddressInfo;
  const reachable = LOOPBACK[address] ?? address;
  return `http://${isIPv6(reachable) ? `[${reachable}]` : reachable}:${opened}`;
}

/** A client cannot connect to an address that stands for all addresses. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };
