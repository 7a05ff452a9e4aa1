import { Injectable } from '@nestjs/common';
import { Gauge, Histogram, Registry } from 'prom-client';
import { overloaded, ServiceError } from '../errors/service-error.js';

export interface BatchLimits {
  /** Items in a batch. */
  readonly size: number;
  /** Batches under way. */
  readonly underWay: number;
  /** Items that wait for a batch. */
  readonly waiting: number;
  /** How long an item may wait for a batch, in milliseconds. */
  readonly wait: number;
}

interface Waiting<Item, Outcome> {
  readonly item: Item;
  readonly since: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Of more than this, half go, and half wait for the next batch. If all went, nothing would be left to do until
 * they are stored, and then the database would have nothing to do until all of them are answered.
 */
const UNDIVIDED = 32;

/**
 * Gathers what waits at the same moment into one piece of work (a group commit, at the level of the
 * application). Nothing waits for company: an item goes in this turn of the event loop, with what came in the
 * same turn, unless as much as allowed is under way; then with what came in the meantime.
 */
export class Batcher<Item, Outcome> {
  private readonly waiting: Waiting<Item, Outcome>[] = [];
  private underWay = 0;
  private isDispatchPlanned = false;

  /**
   * @param run does the work of a batch, and returns the outcomes in the order of the items
   */
  constructor(
    private readonly run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    private readonly limits: BatchLimits,
    private readonly metrics?: BatchMetrics,
  ) {
    metrics?.watch(() => this.waiting.length);
  }

  /**
   * @returns the outcome of this item
   * @throws ServiceError overloaded when too many wait, or this one did for too long; or what `run` throws for a
   *   batch of this item alone
   */
  add(item: Item): Promise<Outcome> {
    if (this.waiting.length >= this.limits.waiting) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      this.waiting.push({ item, since: performance.now(), resolve, reject });
      this.planDispatch();
    });
  }

  private planDispatch(): void {
    if (this.isDispatchPlanned || this.underWay === this.limits.underWay) return;
    this.isDispatchPlanned = true;
    // After all that has arrived was read.
    setImmediate(() => {
      this.isDispatchPlanned = false;
      this.dispatch();
    });
  }

  private dispatch(): void {
    while (this.waiting.length > 0 && this.underWay < this.limits.underWay) {
      if (performance.now() - this.waiting[0]!.since > this.limits.wait) {
        this.waiting.shift()!.reject(overloaded());
        continue;
      }
      const batch = this.waiting.splice(0, this.nextSize());
      this.underWay++;
      this.metrics?.observe(batch.length, performance.now() - batch[0]!.since);
      void this.settle(batch).then((tell) => {
        this.underWay--;
        this.dispatch();
        // Behind the first step of the next batch, which would wait for all these answers to be written otherwise.
        process.nextTick(tell);
      });
    }
  }

  private nextSize(): number {
    const share = Math.max(UNDIVIDED, Math.ceil(this.waiting.length / 2));
    return Math.min(share, this.limits.size);
  }

  /** @returns tells the outcomes to those who wait for them */
  private async settle(batch: readonly Waiting<Item, Outcome>[]): Promise<() => void> {
    try {
      const outcomes = await this.run(batch.map(({ item }) => item));
      return () => batch.forEach(({ resolve }, i) => resolve(outcomes[i]!));
    } catch (error) {
      if (error instanceof ServiceError) {
        // The database is away. Whoever waits would meet the same, only later.
        const all = [...batch, ...this.waiting.splice(0)];
        return () => all.forEach(({ reject }) => reject(error));
      }
      if (batch.length === 1) return () => batch[0]!.reject(error);
      // One item made the batch fail. Its neighbours must not.
      const tells = await Promise.all(batch.map((one) => this.settle([one])));
      return () => tells.forEach((tell) => tell());
    }
  }
}

/** Shows how well gathering works. */
@Injectable()
export class BatchMetrics {
  private readonly sizes: Histogram;
  private readonly waits: Histogram;
  private length: () => number = () => 0;

  constructor(registry: Registry) {
    const registers = [registry];
    this.sizes = new Histogram({
      name: 'plant_store_batch_size',
      help: 'Plants that shared one statement and one commit.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    });
    this.waits = new Histogram({
      name: 'plant_store_batch_wait_seconds',
      help: 'How long the first plant of a batch waited for it to start.',
      buckets: [0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1],
      registers,
    });
    const length = () => this.length();
    new Gauge({
      name: 'plant_store_batch_waiting',
      help: 'Plants that wait for a batch.',
      registers,
      collect() {
        this.set(length());
      },
    });
  }

  /** @param length how many wait now */
  watch(length: () => number): void {
    this.length = length;
  }

  /** @param waited milliseconds */
  observe(size: number, waited: number): void {
    this.sizes.observe(size);
    this.waits.observe(waited / 1000);
  }
}
