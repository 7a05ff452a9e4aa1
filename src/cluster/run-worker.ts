import { once } from 'node:events';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Registry } from 'prom-client';
import { createApp, listen } from '../app.js';
import { overloaded, shuttingDown } from '../errors/service-error.js';
import { createLogger } from '../logging/logger.js';
import { startTracing } from '../tracing/tracing.js';
import { MetricsService } from '../metrics/metrics.service.js';
import { explainStartError } from '../start-errors.js';
import { stopApp } from '../shutdown.js';
import type { ToPrimary, ToWorker, WorkerSettings } from './messages.js';
import { takeSnapshot } from './worker-metrics.js';

/** How often a worker sends its metrics to the primary. A killed worker loses at most the metrics of one interval. */
const SNAPSHOT_INTERVAL_MS = 1000;

/** How long a scrape waits for the primary, which may hang. */
const SCRAPE_TIMEOUT_MS = 3000;

/** Set when the app listens: before that, it has no requests, and `stop` need not stop it gracefully. */
let listeningApp: NestExpressApplication | undefined;
let stopTracing: (() => Promise<void>) | undefined;
const scrapes: PromiseWithResolvers<string>[] = [];

/** Serves requests with the settings that the primary sends, until it sends `stop` or ends. When that fails, tells it why. */
export async function runWorker(): Promise<void> {
  const [settings] = (await once(process, 'message')) as [WorkerSettings];
  await serve(settings).catch((error: unknown) => {
    send({ type: 'failed', reason: explainStartError(error) }, () => process.exit(1));
  });
}

async function serve({ worker, config }: WorkerSettings): Promise<void> {
  const logger = createLogger(config.log, worker);
  process.on('message', (message: ToWorker) => {
    if (message.type === 'stop') void stop(config.http);
    else scrapes.shift()?.resolve(message.text);
  });
  process.on('disconnect', () => {
    logger.error('This worker stops: the primary has ended.');
    for (const { reject } of scrapes) reject(shuttingDown());
    // Without a delay: a new primary may be waiting for the port.
    void stop({ ...config.http, shutdownDelay: 0 });
  });
  const { endpoint } = config.tracing;
  if (endpoint !== undefined) stopTracing = await startTracing(endpoint, logger);
  const app = await createApp(config, logger);
  app.get(MetricsService).readFrom(readAllMetrics);
  const url = await listen(app, { ...config.http, reusePort: true });
  listeningApp = app;
  send({ type: 'listening', url });
  const registry = app.get<Registry>(Registry);
  const sendSnapshot = async () => {
    send({ type: 'snapshot', snapshot: await takeSnapshot(registry) });
  };
  await sendSnapshot();
  setInterval(() => void sendSnapshot(), SNAPSHOT_INTERVAL_MS);
}

/** @throws ServiceError shuttingDown when the primary has ended; overloaded when it does not respond in time */
function readAllMetrics(): Promise<string> {
  if (!process.connected) return Promise.reject(shuttingDown());
  const scrape = Promise.withResolvers<string>();
  // It stays in the list, because the primary responds to all of them in their order.
  scrapes.push(scrape);
  setTimeout(() => scrape.reject(overloaded()), SCRAPE_TIMEOUT_MS).unref();
  send({ type: 'scrape' });
  return scrape.promise;
}

async function stop(timeouts: Parameters<typeof stopApp>[1]): Promise<void> {
  if (listeningApp !== undefined) await stopApp(listeningApp, timeouts);
  await stopTracing?.();
  process.exit(0);
}

/** @param onSent called when the message was sent, or cannot be sent because the primary has ended */
function send(message: ToPrimary, onSent: () => void = () => undefined): void {
  process.send!(message, undefined, {}, onSent);
}
