// Combines work that arrives at the same time into batches: a group commit in the application.

import { RowsUnavailableError, overloaded } from '../errors/errors.js';
import { ServiceError, ConnectionClosed } from '../errors/service-error.js';
import type { Client } from '../http/client.js';

export interface BatchLimits<Item> {
  /** The most items in a batch. */
  readonly size: number;
  /** The most characters in a batch, in UTF-16 code units. An item with more is sent alone. */
  readonly characters: number;
  /** The most batches in flight. */
  readonly inFlight: number;
  /** Only items of the same group share a batch; undefined: all items are of one group. */
  readonly groupOf?: ((item: Item) => unknown) | undefined;
  /** The most items in the queue. */
  readonly queued: number;
  /** How long an item may wait until it is sent, also if its batch failed and it is sent alone, in milliseconds. */
  readonly wait: number;
}

export interface BatchObserver {
  /** @param wait of the first item, in milliseconds */
  observe(size: number, wait: number): void;
}

interface Queued<Item, Outcome> {
  readonly item: Item;
  readonly characters: number;
  readonly client: Client;
  readonly group: unknown;
  readonly since: number;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The longest queue that one batch takes as a whole. From a longer queue, a batch takes half, but at least this many
 * items. If one batch took a long queue as a whole, the service would be idle while the database stores the batch, and
 * the database would be idle while the service writes the responses.
 */
const MAX_UNDIVIDED = 32;

/** How many items of a failed batch are sent at the same time: each may wait for a lock. */
const LANES = 4;

/**
 * An item does not wait for others: it is sent in the turn of the event loop in which it was added, with the other items of that
 * turn. Only when too many batches are in flight, it stays in the queue until one of them ends.
 */
export class Batcher<Item, Outcome> {
  private queue: Queued<Item, Outcome>[] = [];
  private inFlight = 0;
  private isDispatchPlanned = false;

  /** @param run does the work of a batch, and returns the outcomes in the order of the items */
  constructor(
    private readonly run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    private readonly limits: BatchLimits<Item>,
    private readonly metrics?: BatchObserver,
  ) {}

  /** How many items wait, without those whose client has given up. */
  get queueLength(): number {
    return this.queue.filter(({ client }) => !client.closed).length;
  }

  /**
   * @param characters of the item
   * @param client that waits for the outcome: when it gives up, the item leaves the queue
   * @returns its outcome
   * @throws ServiceError overloaded when the queue is full, or this item was in it for too long
   * @throws ConnectionClosed when the client has given up
   * @throws ServiceError of `run` when the database is unavailable to this item, or to the batch before it
   * @throws Error of `run` for this item
   */
  add(item: Item, characters: number, client: Client): Promise<Outcome> {
    if (this.isFull())
      this.queue = this.queue.filter((queued) => keepOrReject(queued, this.limits));
    if (this.isFull()) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const group = this.limits.groupOf?.(item);
      const since = performance.now();
      this.queue.push({ item, characters, client, group, since, resolve, reject });
      this.planDispatch();
    });
  }

  private isFull(): boolean {
    return this.queue.length >= this.limits.queued;
  }

  private planDispatch(): void {
    if (this.isDispatchPlanned || this.inFlight >= this.limits.inFlight) return;
    this.isDispatchPlanned = true;
    // Runs after all requests that have arrived are read, so that their items join the batch.
    setImmediate(() => {
      this.isDispatchPlanned = false;
      this.dispatch();
    });
  }

  private dispatch(): void {
    while (this.inFlight < this.limits.inFlight) {
      const batch = this.takeBatch();
      if (batch.length === 0) return;
      void this.send(batch);
    }
  }

  /** Takes the next item from the queue, and those after it that may share its batch. */
  private takeBatch(): readonly Queued<Item, Outcome>[] {
    this.queue = this.queue.filter((queued) => keepOrReject(queued, this.limits));
    const [first] = this.queue;
    if (first === undefined) return [];
    const half = Math.max(MAX_UNDIVIDED, Math.ceil(this.queue.length / 2));
    const size = Math.min(half, this.limits.size);
    const batch: Queued<Item, Outcome>[] = [];
    let characters = 0;
    this.queue = this.queue.filter((queued) => {
      if (queued.group !== first.group || batch.length === size) return true;
      characters += queued.characters;
      if (characters > this.limits.characters && batch.length > 0) return true;
      batch.push(queued);
      return false;
    });
    return batch;
  }

  private async send(batch: readonly Queued<Item, Outcome>[]): Promise<void> {
    this.inFlight++;
    this.metrics?.observe(batch.length, performance.now() - batch[0]!.since);
    const settle = await this.attempt(batch);
    this.inFlight--;
    // The next batch is sent before the responses are written, so that the database is not idle meanwhile.
    this.dispatch();
    settle();
  }

  /** @returns a function that settles the items */
  private async attempt(batch: readonly Queued<Item, Outcome>[]): Promise<() => void> {
    try {
      const outcomes = await this.run(batch.map(({ item }) => item));
      return () => batch.forEach(({ resolve }, i) => resolve(outcomes[i]!));
    } catch (error) {
      if (batch.length > 1 && !isOutage(error)) {
        await this.sendEach(batch, error);
        return () => undefined;
      }
      const failed = isOutage(error) ? [...batch, ...this.queue.splice(0)] : batch;
      return () => failed.forEach(({ reject }) => reject(error));
    }
  }

  /** Perhaps one item made the batch fail: sent alone, the others succeed. */
  private async sendEach(batch: readonly Queued<Item, Outcome>[], error: unknown): Promise<void> {
    // All lanes take from one iterator.
    const rest = batch.values();
    const lane = async () => {
      for (const queued of rest) {
        if (!keepOrReject(queued, this.limits, error)) continue;
        try {
          const [outcome] = await this.run([queued.item]);
          queued.resolve(outcome!);
        } catch (reason) {
          const failed = isOutage(reason) ? [queued, ...rest, ...this.queue.splice(0)] : [queued];
          failed.forEach(({ reject }) => reject(reason));
        }
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }
}

/** The database is unavailable: the items in the queue would fail in the same way, only later. */
function isOutage(error: unknown): boolean {
  return error instanceof ServiceError && !(error instanceof RowsUnavailableError);
}

/** @returns whether the item is still wanted. It is rejected if it has waited for too long, or its client has given up. */
function keepOrReject<Item, Outcome>(
  { client, since, reject }: Queued<Item, Outcome>,
  { wait }: BatchLimits<Item>,
  error?: unknown,
): boolean {
  if (client.closed) reject(new ConnectionClosed());
  else if (performance.now() - since > wait) reject(error ?? overloaded());
  else return true;
  return false;
}
