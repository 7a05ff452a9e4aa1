import { fork, type ChildProcess } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { Counter } from 'prom-client';
import type { AppConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { tryAddress } from '../http/try-address.js';
import { createRegistry, workerRestarts } from '../metrics/registry.js';
import { BackOff } from './back-off.js';
import type { ToPrimary, ToWorker, WorkerSettings } from './messages.js';
import { workerConfig } from './worker-config.js';
import { takeSnapshot, WorkerMetrics } from './worker-metrics.js';

/** How long after all time-outs of an orderly stop a worker that still runs is killed. */
const STOP_GRACE_MS = 5000;

/** The primary: starts the worker processes, replaces those that end, stops them, and adds up their metrics. */
export class Workers {
  private readonly processes = new Set<ChildProcess>();
  private readonly running: Promise<void>[] = [];
  private readonly stopping = new AbortController();
  private readonly metrics = new WorkerMetrics();
  private readonly registry = createRegistry();
  private readonly restarts: Counter = workerRestarts(this.registry);

  /** @param config of the service, with the address of a database whose schema is up to date */
  constructor(
    private readonly config: AppConfig,
    private readonly logger: Logger,
  ) {}

  /**
   * Starts the first worker alone, so that an error that all workers would meet is logged once; then the others.
   *
   * @returns the address, when all workers listen; never after `stop`
   * @throws StartError when the first worker cannot start; the error of the socket when the address is taken
   */
  async start(): Promise<string> {
    process.on('exit', () => this.kill());
    const { host } = this.config.http;
    // Workers share a port with every process that asks for it in the same way, another Plant Store included: only
    // this check tells that the port is taken. It comes last, to leave little time to a service that starts as well.
    const port = await tryAddress(host, this.config.http.port);
    const config = { ...this.config, http: { ...this.config.http, port } };
    const url = await this.startWorker(config, 1);
    const others = Array.from({ length: config.workers - 1 }, (_, i) => i + 2);
    await Promise.all(others.map((worker) => this.startWorker(config, worker)));
    return url;
  }

  /** Stops all workers in good order, at the same time, and waits for their end. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const child of this.processes) tell(child, { type: 'stop' });
    const { shutdownDelay, shutdownTimeout } = this.config.http;
    const deadline = setTimeout(
      () => {
        this.logger.error('Workers that did not stop in time are killed.');
        this.kill();
      },
      shutdownDelay + shutdownTimeout + STOP_GRACE_MS,
    );
    await Promise.all(this.running);
    clearTimeout(deadline);
  }

  private kill(): void {
    for (const child of this.processes) child.kill('SIGKILL');
  }

  /** @returns the address, when the worker or its replacement listens */
  private startWorker(config: AppConfig, worker: number): Promise<string> {
    const listening = Promise.withResolvers<string>();
    this.running.push(this.keepRunning(config, worker, listening));
    return listening.promise;
  }

  /** Runs a worker and its replacements until the service stops. */
  private async keepRunning(
    config: AppConfig,
    worker: number,
    listening: PromiseWithResolvers<string>,
  ): Promise<void> {
    const { signal } = this.stopping;
    const backOff = new BackOff();
    let hasListened = false;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const end = await this.run({ worker, config: workerConfig(config, worker) }, (url) => {
        if (hasListened) this.logger.info(`Worker ${worker} listens again.`);
        hasListened = true;
        listening.resolve(url);
      });
      if (signal.aborted) return;
      if (worker === 1 && !hasListened) {
        listening.reject(
          new StartError(end.reason ?? `The first worker ended (${end.how}) before it listened.`),
        );
        return;
      }
      const wait = backOff.next(performance.now() - startedAt);
      this.restarts.inc();
      const because = end.reason === undefined ? '' : `: ${end.reason}`;
      this.logger.error(
        `Worker ${worker} ended (${end.how})${because}; it is replaced in ${wait} ms.`,
      );
      await delay(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Runs one process to its end, and tells how it ended, and why if it said so. */
  private async run(
    settings: WorkerSettings,
    onListening: (url: string) => void,
  ): Promise<{ how: string; reason: string | undefined }> {
    const { worker } = settings;
    const child = fork(new URL('worker.js', import.meta.url));
    this.processes.add(child);
    let reason: string | undefined;
    child.on('error', (error) => (reason = error.message));
    child.on('message', (message: ToPrimary) => {
      switch (message.type) {
        case 'listening':
          onListening(message.url);
          break;
        case 'failed':
          reason = message.reason;
          break;
        case 'snapshot':
          this.metrics.update(worker, message.snapshot);
          break;
        case 'scrape':
          void this.read().then((text) => tell(child, { type: 'metrics', text }));
          break;
      }
    });
    tell(child, settings);
    // Not "exit", which may come before the last message, and does not come at all if there is no process.
    const how = await new Promise<string>((resolve) => {
      child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    this.processes.delete(child);
    this.metrics.end(worker);
    return { how, reason };
  }

  private async read(): Promise<string> {
    return this.metrics.text(await takeSnapshot(this.registry));
  }
}

/** A child that is just ending does not read it; its end is noticed by `run`. */
function tell(child: ChildProcess, message: WorkerSettings | ToWorker): void {
  child.send(message, () => undefined);
}
