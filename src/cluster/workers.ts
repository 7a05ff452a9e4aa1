import cluster, { type Worker } from 'node:cluster';
import type { Logger } from 'pino';
import type { AppConfig } from '../config/config.js';
import { workerEnvironment } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { tryAddress } from '../http/try-address.js';
import { BackOff } from './back-off.js';
import { closeLostConnection } from './lost-connection.js';
import type { ToPrimary } from './messages.js';
import { MetricsCollector, tellWorker } from './metrics-collector.js';
import { shareOf } from './share.js';

/** How long after all time-outs of an orderly stop a worker that still runs is killed. */
const STOP_GRACE_MS = 5000;

/** One of the workers, and those that replaced it. */
interface Slot {
  readonly number: number;
  worker: Worker | undefined;
  forkedAt: number;
  isListening: boolean;
  hasListened: boolean;
  /** Why it could not start, if it said so. */
  reason: string | undefined;
  readonly backOff: BackOff;
  restart: NodeJS.Timeout | undefined;
}

/** Starts worker processes that share the address, keeps their number, and stops them. */
export class Workers {
  private readonly slots: readonly Slot[];
  private readonly metrics = new MetricsCollector();
  private readonly started = Promise.withResolvers<string | undefined>();
  private readonly stopped = Promise.withResolvers<void>();
  private isStopping = false;
  private port: number;

  /** @param config for all workers together, with the address of a database whose schema is up to date */
  constructor(
    private readonly config: AppConfig,
    private readonly logger: Logger,
  ) {
    this.port = config.http.port;
    this.slots = Array.from({ length: config.workers }, (_, i) => ({
      number: i + 1,
      worker: undefined,
      forkedAt: 0,
      isListening: false,
      hasListened: false,
      reason: undefined,
      backOff: new BackOff(),
      restart: undefined,
    }));
  }

  /**
   * Starts the first worker alone, so that what all would meet is said once; then the others.
   *
   * @returns the address, when all listen; undefined if `stop` was called before
   * @throws StartError when the first worker cannot start; the error of the socket with PORT=0
   */
  async start(): Promise<string | undefined> {
    // However this process ends, short of kill -9: nobody is left behind.
    process.on('exit', () => this.kill());
    // Workers share a port 0 only as long as one of them lives; the next would get another port.
    if (this.port === 0) this.port = await tryAddress(this.config.http.host, 0);
    if (!this.isStopping) this.fork(this.slots[0]!);
    return this.started.promise;
  }

  /** Stops all workers in good order, at the same time, and waits for their end. */
  async stop(): Promise<void> {
    this.isStopping = true;
    this.started.resolve(undefined);
    for (const { worker, isListening, restart } of this.slots) {
      clearTimeout(restart);
      if (worker === undefined) continue;
      if (isListening) tellWorker(worker, { type: 'stop' });
      // It served nobody yet.
      else worker.process.kill('SIGKILL');
    }
    const { shutdownDelay, shutdownTimeout } = this.config.http;
    const deadline = setTimeout(
      () => {
        this.logger.error('Workers that did not stop in time are killed.');
        this.kill();
      },
      shutdownDelay + shutdownTimeout + STOP_GRACE_MS,
    );
    this.noticeEnd();
    await this.stopped.promise;
    clearTimeout(deadline);
  }

  private kill(): void {
    for (const { worker } of this.slots) worker?.process.kill('SIGKILL');
  }

  private fork(slot: Slot): void {
    const share = shareOf(this.config, slot.number);
    const config = { ...share, http: { ...share.http, port: this.port } };
    const worker = cluster.fork(workerEnvironment({ worker: slot.number, config }));
    closeLostConnection(worker);
    slot.worker = worker;
    slot.forkedAt = performance.now();
    slot.reason = undefined;
    worker.on('message', (message: ToPrimary) => this.receive(slot, worker, message));
    worker.once('exit', (code: number | null, signal: string | null) => {
      this.bury(slot, worker, signal ?? `exit code ${code}`);
    });
    worker.on('error', (error: Error) => {
      // Without a process there will be no exit.
      if (worker.process.pid === undefined) this.bury(slot, worker, error.message);
    });
  }

  private receive(slot: Slot, worker: Worker, message: ToPrimary): void {
    switch (message.type) {
      case 'listening':
        this.noticeListening(slot, message.url);
        break;
      case 'failed':
        slot.reason = message.reason;
        break;
      case 'measured':
        this.metrics.receive(worker, message.id, message.snapshot);
        break;
      case 'read-metrics':
        void this.metrics.read(this.listening()).then((text) => {
          tellWorker(worker, { type: 'metrics', id: message.id, text });
        });
        break;
    }
  }

  private noticeListening(slot: Slot, url: string): void {
    slot.isListening = true;
    if (slot.hasListened) this.logger.info(`Worker ${slot.number} listens again.`);
    slot.hasListened = true;
    if (this.isStopping) {
      tellWorker(slot.worker!, { type: 'stop' });
    } else if (this.slots.every(({ hasListened }) => hasListened)) {
      this.started.resolve(url);
    } else {
      for (const other of this.slots) {
        if (other.forkedAt === 0) this.fork(other);
      }
    }
  }

  private bury(slot: Slot, worker: Worker, how: string): void {
    slot.worker = undefined;
    slot.isListening = false;
    this.metrics.bury(worker);
    if (this.isStopping) {
      this.noticeEnd();
      return;
    }
    const isFirst = this.slots.every(({ hasListened }) => !hasListened);
    if (isFirst) {
      const reason = slot.reason ?? `The first worker ended (${how}) before it listened.`;
      this.started.reject(new StartError(reason));
      return;
    }
    this.replace(slot, how);
  }

  private replace(slot: Slot, how: string): void {
    const delay = slot.backOff.next(performance.now() - slot.forkedAt);
    this.metrics.restarts.inc();
    const because = slot.reason === undefined ? '' : `: ${slot.reason}`;
    this.logger.error(
      `Worker ${slot.number} ended (${how})${because}; it is replaced in ${delay} ms.`,
    );
    slot.restart = setTimeout(() => this.fork(slot), delay);
  }

  private listening(): Worker[] {
    return this.slots.flatMap(({ worker, isListening }) => (worker && isListening ? [worker] : []));
  }

  private noticeEnd(): void {
    if (this.slots.every(({ worker }) => worker === undefined)) this.stopped.resolve();
  }
}
