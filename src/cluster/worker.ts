import cluster from 'node:cluster';
import { Registry } from 'prom-client';
import { createApp, listen } from '../app.js';
import { readWorkerSettings } from '../config/config.js';
import { shuttingDown } from '../errors/service-error.js';
import { createLogger } from '../logging/logger.js';
import { startTracing } from '../tracing/tracing.js';
import { MetricsService } from '../metrics/metrics.service.js';
import { takeSnapshot } from '../metrics/worker-metrics.js';
import { explainStartError } from '../start-errors.js';
import type { ToPrimary, ToWorker } from './messages.js';
import { stopApp } from '../shutdown.js';

/** Serves requests until the primary says stop, or is gone. */
export async function runWorker(): Promise<void> {
  ignoreSignals();
  try {
    await serve();
  } catch (error) {
    tellPrimary({ type: 'failed', reason: explainStartError(error) }, () => process.exit(1));
  }
}

/** A terminal and systemd send them to every process; the primary tells us when to stop. */
function ignoreSignals(): void {
  process.on('SIGTERM', () => undefined);
  process.on('SIGINT', () => undefined);
}

async function serve(): Promise<void> {
  const { worker, config } = readWorkerSettings();
  const stopTracing =
    config.tracing.endpoint === undefined ? undefined : await startTracing(config.tracing.endpoint);
  const app = await createApp(config, createLogger(config.log, worker));
  const questions = new Map<number, PromiseWithResolvers<string>>();
  app.get(MetricsService).readFrom(() => readAllMetrics(questions));
  const url = await listen(app, config.http);

  const stop = async (shutdownDelay: number) => {
    await stopApp(app, { ...config.http, shutdownDelay });
    await stopTracing?.();
    process.exit(0);
  };
  process.on('message', (message: ToWorker) => {
    switch (message.type) {
      case 'stop':
        void stop(config.http.shutdownDelay);
        break;
      case 'measure':
        void takeSnapshot(app.get(Registry)).then((snapshot) => {
          tellPrimary({ type: 'measured', id: message.id, snapshot });
        });
        break;
      case 'metrics':
        questions.get(message.id)?.resolve(message.text);
        questions.delete(message.id);
        break;
    }
  });
  cluster.worker!.on('disconnect', () => {
    // The primary is dead, and nobody brings new connections. Otherwise Node would end this process at once,
    // and with it the requests in flight.
    cluster.worker!.exitedAfterDisconnect = true;
    for (const { reject } of questions.values()) reject(shuttingDown());
    void stop(0);
  });
  tellPrimary({ type: 'listening', url });
}

let lastQuestion = 0;

/** @throws ServiceError shuttingDown when the primary is gone */
function readAllMetrics(questions: Map<number, PromiseWithResolvers<string>>): Promise<string> {
  if (!process.connected) return Promise.reject(shuttingDown());
  const id = ++lastQuestion;
  const question = Promise.withResolvers<string>();
  questions.set(id, question);
  tellPrimary({ type: 'read-metrics', id });
  return question.promise;
}

/** @param then what to do when it was sent, or could not be */
function tellPrimary(message: ToPrimary, then: () => void = () => undefined): void {
  process.send!(message, undefined, {}, then);
}
