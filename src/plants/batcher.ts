import { overloaded, ServiceError } from '../errors/service-error.js';
import type { BatchMetrics } from './batch-metrics.js';

export interface BatchLimits {
  /** The most items in a batch. */
  readonly size: number;
  /** The most batches in flight. */
  readonly inFlight: number;
  /** The most items in the queue. */
  readonly queued: number;
  /** How long an item may stay in the queue, in milliseconds. */
  readonly wait: number;
}

interface Queued<Item, Outcome> {
  readonly item: Item;
  readonly since: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

type Result<Outcome> = { readonly outcome: Outcome } | { readonly error: unknown };

/**
 * The longest queue that one batch takes as a whole. From a longer queue, a batch takes half, but at least this many
 * items. If one batch took a long queue as a whole, the service would be idle while the database stores the batch, and
 * the database would be idle while the service writes the responses.
 */
const MAX_UNDIVIDED = 32;

/**
 * Combines items in a queue into batches (a group commit in the application). An item does not wait for others: it is
 * sent in the turn of the event loop in which it was added, with the other items of that turn. Only when too many
 * batches are in flight, it stays in the queue until one of them ends.
 */
export class Batcher<Item, Outcome> {
  private readonly queue: Queued<Item, Outcome>[] = [];
  private inFlight = 0;
  private isDispatchPlanned = false;

  /** @param run does the work of a batch, and returns the outcomes in the order of the items */
  constructor(
    private readonly run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    private readonly limits: BatchLimits,
    private readonly metrics?: BatchMetrics,
  ) {}

  get queueLength(): number {
    return this.queue.length;
  }

  /**
   * @returns the outcome of this item
   * @throws ServiceError overloaded when the queue is full, or this item was in it for too long; a ServiceError of
   *   `run` for any batch; another error of `run` only for a batch of this item alone
   */
  add(item: Item): Promise<Outcome> {
    if (this.queue.length >= this.limits.queued) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      this.queue.push({ item, since: performance.now(), resolve, reject });
      this.planDispatch();
    });
  }

  private planDispatch(): void {
    if (this.isDispatchPlanned || this.inFlight === this.limits.inFlight) return;
    this.isDispatchPlanned = true;
    // Runs after all requests that have arrived are read, so that their items join the batch.
    setImmediate(() => {
      this.isDispatchPlanned = false;
      this.dispatch();
    });
  }

  private dispatch(): void {
    while (this.queue.length > 0 && this.inFlight < this.limits.inFlight) {
      if (performance.now() - this.queue[0]!.since > this.limits.wait) {
        this.queue.shift()!.reject(overloaded());
        continue;
      }
      const half = Math.ceil(this.queue.length / 2);
      const batch = this.queue.splice(0, Math.min(Math.max(MAX_UNDIVIDED, half), this.limits.size));
      this.metrics?.observe(batch.length, performance.now() - batch[0]!.since);
      void this.send(batch);
    }
  }

  private async send(batch: readonly Queued<Item, Outcome>[]): Promise<void> {
    this.inFlight++;
    const results = await this.resultsOf(batch);
    this.inFlight--;
    // The next batch is sent before the responses are written, so that the database is not idle meanwhile.
    this.dispatch();
    batch.forEach(({ resolve, reject }, i) => {
      const result = results[i]!;
      if ('error' in result) reject(result.error);
      else resolve(result.outcome);
    });
  }

  private async resultsOf(batch: readonly Queued<Item, Outcome>[]): Promise<Result<Outcome>[]> {
    try {
      return (await this.run(batch.map(({ item }) => item))).map((outcome) => ({ outcome }));
    } catch (error) {
      if (error instanceof ServiceError) {
        // The database is unavailable: the items in the queue would fail in the same way, only later.
        for (const { reject } of this.queue.splice(0)) reject(error);
        return batch.map(() => ({ error }));
      }
      if (batch.length === 1) return [{ error }];
      // One item made the batch fail: run each item alone, so that the others succeed.
      return (await Promise.all(batch.map((one) => this.resultsOf([one])))).flat();
    }
  }
}
