import { overloaded, ServiceError } from '../errors/service-error.js';
import type { BatchMetrics } from './batch-metrics.js';

export interface BatchLimits {
  /** Items in a batch. */
  readonly size: number;
  /** Batches in flight. */
  readonly inFlight: number;
  /** Items in the queue. */
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

/** What became of one item of a batch. */
type Result<Outcome> = { readonly outcome: Outcome } | { readonly error: unknown };

/**
 * Of a longer queue, half is sent, and half waits for the next batch. If all of it were sent, the service would have
 * nothing to do until it is stored, and then the database nothing until all responses are written.
 */
const UNDIVIDED = 32;

/**
 * Combines items that are queued at the same moment into one piece of work (a group commit, at the level of the
 * application). No item waits for others to come: it is sent in this turn of the event loop, with the items of the same
 * turn, unless as many batches as allowed are in flight; then with the items that came in the meantime.
 */
export class Batcher<Item, Outcome> {
  private readonly queue: Queued<Item, Outcome>[] = [];
  private inFlight = 0;
  private isDispatchPlanned = false;

  /**
   * @param run does the work of a batch, and returns the outcomes in the order of the items
   */
  constructor(
    private readonly run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    private readonly limits: BatchLimits,
    private readonly metrics?: BatchMetrics,
  ) {
    metrics?.watch(() => this.queue.length);
  }

  /**
   * @returns the outcome of this item
   * @throws ServiceError overloaded when the queue is full, or this item was in it for too long; or what `run` throws
   *   for a batch of this item alone
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
    // After everything that has arrived was read.
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
      const batch = this.queue.splice(0, Math.min(Math.max(UNDIVIDED, half), this.limits.size));
      this.metrics?.observe(batch.length, performance.now() - batch[0]!.since);
      void this.send(batch);
    }
  }

  private async send(batch: readonly Queued<Item, Outcome>[]): Promise<void> {
    this.inFlight++;
    const results = await this.resultsOf(batch);
    this.inFlight--;
    // Before the responses are written: the database would wait for them.
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
        // The database is away: the items in the queue would meet the same, only later.
        for (const { reject } of this.queue.splice(0)) reject(error);
        return batch.map(() => ({ error }));
      }
      if (batch.length === 1) return [{ error }];
      // One item made the batch fail; the others must not.
      return (await Promise.all(batch.map((one) => this.resultsOf([one])))).flat();
    }
  }
}
