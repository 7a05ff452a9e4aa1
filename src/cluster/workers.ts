import { fork, type ChildProcess, type StdioOptions } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from 'pino';
import type { AppConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { tryAddress } from '../http/try-address.js';
import { WORKER_LOG_DESCRIPTOR } from '../logging/log-output.js';
import { createRegistry, workerRestarts } from '../metrics/registry.js';
import { BackOff } from './back-off.js';
import type { ToPrimary, ToWorker, WorkerSettings } from './messages.js';
import { workerConfig } from './worker-config.js';
import { takeSnapshot, WorkerMetrics } from './worker-metrics.js';

/** How long a worker may run after all timeouts of a graceful stop; then it is killed. */
const STOP_GRACE_MS = 5000;

/** The primary: starts the worker processes, replaces those that end, stops them, and adds up their metrics. */
export class Workers {
  private readonly processes = new Set<ChildProcess>();
  private readonly running: Promise<void>[] = [];
  private readonly stopping = new AbortController();
  private readonly metrics = new WorkerMetrics();
  private readonly registry = createRegistry();
  private readonly restarts = workerRestarts(this.registry);

  /** @param config of the service, with the address of a database whose schema is up to date */
  constructor(
    private config: AppConfig,
    private readonly logger: Logger,
  ) {}

  /**
   * Starts the first worker alone, so that an error that all workers would meet is logged once; then the others.
   *
   * @returns the URL, when all workers listen. After `stop`, the promise stays pending.
   * @throws StartError when the first worker cannot start; the error of the socket when the address is taken
   */
  async start(): Promise<string> {
    // A primary that exits must not leave workers behind.
    process.on('exit', () => this.kill());
    const { http, workers } = this.config;
    // With `reusePort`, a second Plant Store of the same user could listen on the same port unnoticed: this check detects
    // it, right before the first worker starts. For port 0, the system chooses a port here, which all workers use.
    const port = await tryAddress(http.host, http.port);
    this.config = { ...this.config, http: { ...http, port } };
    const url = await this.startWorker(1);
    const others = Array.from({ length: workers - 1 }, (_, i) => i + 2);
    await Promise.all(others.map((worker) => this.startWorker(worker)));
    return url;
  }

  /** Stops all workers gracefully, at the same time, and waits until they have ended. */
  async stop(): Promise<void> {
    this.stopping.abort();
    for (const child of this.processes) send(child, { type: 'stop' });
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

  /** @returns the URL, when the worker or its replacement listens */
  private startWorker(worker: number): Promise<string> {
    const listening = Promise.withResolvers<string>();
    this.running.push(this.keepRunning(worker, listening));
    return listening.promise;
  }

  /** Runs a worker and its replacements until the service stops. */
  private async keepRunning(
    worker: number,
    listening: PromiseWithResolvers<string>,
  ): Promise<void> {
    const { signal } = this.stopping;
    const settings = { worker, config: workerConfig(this.config, worker) };
    const backOff = new BackOff();
    let hasListened = false;
    while (!signal.aborted) {
      const startedAt = performance.now();
      const { ending, reason } = await this.run(settings, (url) => {
        if (hasListened) this.logger.info(`Worker ${worker} listens again.`);
        hasListened = true;
        listening.resolve(url);
      });
      if (signal.aborted) return;
      if (worker === 1 && !hasListened) {
        listening.reject(
          new StartError(reason ?? `The first worker ended (${ending}) before it listened.`),
        );
        return;
      }
      const wait = backOff.next(performance.now() - startedAt);
      this.restarts.inc();
      const suffix = reason === undefined ? '' : `: ${reason}`;
      this.logger.error(
        `Worker ${worker} ended (${ending})${suffix}; it is replaced in ${wait} ms.`,
      );
      await delay(wait, undefined, { signal }).catch(() => undefined);
    }
  }

  /**
   * Runs one process to its end.
   *
   * @returns the signal or the exit code, and the reason if the worker sent one
   */
  private async run(
    settings: WorkerSettings,
    onListening: (url: string) => void,
  ): Promise<{ ending: string; reason: string | undefined }> {
    const { worker } = settings;
    let child: ChildProcess;
    try {
      child = createProcess();
    } catch (error) {
      return { ending: 'not created', reason: (error as Error).message };
    }
    this.processes.add(child);
    let reason: string | undefined;
    for (const output of [child.stdout, child.stderr]) output?.on('data', forward);
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
          void this.readMetrics().then((text) => send(child, { type: 'metrics', text }));
          break;
      }
    });
    send(child, settings);
    // Not the event `exit`: it may come before the last message, and never comes if the process could not be created.
    const ending = await new Promise<string>((resolve) => {
      child.once('close', (code, signal) => resolve(signal ?? `exit code ${code}`));
    });
    this.processes.delete(child);
    this.metrics.end(worker);
    return { ending, reason };
  }

  private async readMetrics(): Promise<string> {
    return this.metrics.text(await takeSnapshot(this.registry));
  }
}

function createProcess(): ChildProcess {
  const stdio: StdioOptions = [
    'ignore',
    // On a terminal, which is a blocking output in any case, the library that formats the log looks here for colours.
    process.stdout.isTTY ? 'inherit' : 'pipe',
    'pipe',
    'ipc',
  ];
  stdio[WORKER_LOG_DESCRIPTOR] = 1;
  return fork(new URL('worker.js', import.meta.url), { stdio });
}

/**
 * Writes to standard error what a worker writes besides its log, such as the stack of a crash. While nobody reads that, it is
 * lost: if it waited, the worker would not be replaced before it was read.
 */
function forward(text: Buffer): void {
  if (!process.stderr.writableNeedDrain) process.stderr.write(text);
}

/**
 * Errors are ignored: a child that is about to exit does not receive the message, and `run` notices its end. A child whose
 * process could not be created has no `send`.
 */
function send(child: Partial<ChildProcess>, message: WorkerSettings | ToWorker): void {
  child.send?.(message, () => undefined);
}
