import { once } from 'node:events';
import { isIPv6, type AddressInfo } from 'node:net';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { AppModule, type AppConfig } from './app.module.js';
import type { Config } from './config/config.js';
import { HttpAdapter } from './http/http-adapter.js';
import { lifecycleMiddleware } from './http/lifecycle.middleware.js';
import { LifecycleService } from './http/lifecycle.service.js';
import { securityHeaders } from './http/security-headers.js';
import { serveDocument } from './openapi/serve-document.js';

/**
 * Builds the service: the one way to do so, for production, tests, benchmark and document export alike.
 *
 * @param config with the address of a database whose schema is up to date
 * @returns the application, initialised and not yet listening
 */
export async function createApp(config: AppConfig): Promise<NestExpressApplication> {
  const app = await NestFactory.create<NestExpressApplication>(
    AppModule.register(config),
    new HttpAdapter(config.http),
    // The body is read behind the guard: see http/json-body.ts.
    { bodyParser: false, abortOnError: false, logger: ['error', 'warn'] },
  );
  app.use(lifecycleMiddleware(app.get(LifecycleService)));
  app.use(securityHeaders());
  serveDocument(app, config.baseUrl);
  return app.init();
}

/**
 * Opens the service to clients.
 *
 * @returns the address it listens on
 * @throws the error of the socket, such as EADDRINUSE
 */
export async function listen(app: NestExpressApplication, { host, port }: Config['http']): Promise<string> {
  // Not app.listen(): it prints a stack trace for a port that is taken.
  const server = app.getHttpServer();
  await once(server.listen(port, host), 'listening');
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

/**
 * Stops the service without losing a request: no new connections, requests in flight are answered, then
 * the connections to the database close.
 *
 * @param timeout milliseconds after which connections that are still open are cut
 */
export async function stopApp(app: NestExpressApplication, timeout: number): Promise<void> {
  const lifecycle = app.get(LifecycleService);
  const server = app.getHttpServer();
  lifecycle.phase = 'draining';
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  const deadline = setTimeout(() => {
    lifecycle.phase = 'stopping';
    server.closeAllConnections();
  }, timeout);
  await closed;
  clearTimeout(deadline);
  lifecycle.phase = 'stopping';
  await app.close();
}
