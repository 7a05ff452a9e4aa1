// Stops the app in good order.

import { Server as NetServer } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Config } from './config/config.js';
import { LifecycleService } from './http/lifecycle.service.js';

/** How long a connection may stay idle after the listener closed: a request may be in transit. */
const IDLE_GRACE_MS = 1000;

/** How long the connections to the database may take to close. */
const CLOSE_TIMEOUT_MS = 1000;

/**
 * Stops the service without losing a request: readiness fails; after a delay no connection is accepted; requests in
 * flight get their responses and their connections close; then the connections to the database close.
 *
 * `shutdownDelay` gives load balancers time to notice. Requests that are still in flight `shutdownTimeout` after the
 * delay are refused, and their connections are closed. Both are milliseconds.
 */
export async function stopApp(
  app: NestExpressApplication,
  { shutdownDelay, shutdownTimeout }: Pick<Config['http'], 'shutdownDelay' | 'shutdownTimeout'>,
): Promise<void> {
  const lifecycle = app.get(LifecycleService);
  const server = app.getHttpServer();
  lifecycle.drain();
  if (shutdownDelay > 0) await delay(shutdownDelay);
  const idle = setTimeout(() => server.closeIdleConnections(), IDLE_GRACE_MS);
  const deadline = setTimeout(() => {
    lifecycle.stop();
    // In the next turn of the event loop, when the refusals have been written.
    setImmediate(() => server.closeAllConnections());
  }, shutdownTimeout);
  await new Promise<void>((resolve) => {
    // `close` of node:http would also close idle connections at once, and lose a request in transit.
    NetServer.prototype.close.call(server, () => resolve());
  });
  clearTimeout(idle);
  clearTimeout(deadline);
  // Limited, because a frozen database server never closes its side of the connections.
  await Promise.race([app.close(), delay(CLOSE_TIMEOUT_MS, undefined, { ref: false })]);
}
