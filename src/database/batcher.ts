import { ConnectionClosed, overloaded, ServiceError } from '../errors/service-error.js';
import type { Client } from '../http/client.js';
import { PartUnavailableError } from './run-statement.js';

export interface BatchLimits<Item> {
  /** The most items in a batch. */
  size: number;
  /** The most characters in a batch, in UTF-16 code units. An item with more is sent alone. */
  readonly characters: number;
  /** The most batches in flight. */
  inFlight: number;
  /** Only items of the same group share a batch; undefined: all items are of one group. */
  groupOf?: ((item: Item) => unknown) | undefined;
  /** The most items in the queue. */
  readonly queued: number;
  /** How long an item may stay in the queue, in milliseconds. */
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

/** An item whose batch failed. */
interface Separated<Item, Outcome> {
  readonly queued: Queued<Item, Outcome>;
  readonly error: unknown;
}

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
  private queue: Queued<Item, Outcome>[] = [];
  /** The items of failed batches, which are sent alone, before the queue. */
  private separated: Separated<Item, Outcome>[] = [];
  /** The groups whose last batch failed. Their next batches may wait for a timeout. */
  private readonly failing = new Set<unknown>();
  private failingInFlight = 0;
  private inFlight = 0;
  private isDispatchPlanned = false;

  /**
   * @param run does the work of a batch, and returns the outcomes in the order of the items
   * @param limits may be changed later
   */
  constructor(
    private readonly run: (items: readonly Item[]) => Promise<readonly Outcome[]>,
    private readonly limits: BatchLimits<Item>,
    private readonly metrics?: BatchObserver,
  ) {}

  /** How many items wait, without those whose client has given up. */
  get queueLength(): number {
    const waiting = [...this.separated.map(({ queued }) => queued), ...this.queue];
    return waiting.filter(({ client }) => !client.closed).length;
  }

  /**
   * @param characters of the item
   * @param client that waits for the outcome: when it gives up, the item leaves the queue
   * @returns its outcome
   * @throws ServiceError overloaded when the queue is full, or this item was in it for too long
   * @throws ConnectionClosed when the client has given up
   * @throws ServiceError of `run` when any batch of the item's group failed because the database is unavailable
   * @throws Error of `run` for a batch of this item alone, or for its last batch if no time is left to send it alone
   */
  add(item: Item, characters: number, client: Client): Promise<Outcome> {
    if (this.isFull()) this.dropUnwanted();
    if (this.isFull()) return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const group = this.limits.groupOf?.(item);
      const since = performance.now();
      this.queue.push({ item, characters, client, group, since, resolve, reject });
      this.planDispatch();
    });
  }

  private isFull(): boolean {
    return this.separated.length + this.queue.length >= this.limits.queued;
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
      this.dropUnwanted();
      const batch = this.nextBatch();
      if (batch.length === 0) return;
      void this.send(batch);
    }
  }

  /** Rejects the items that have waited for too long, and those whose client has given up. */
  private dropUnwanted(): void {
    const now = performance.now();
    const isWanted = ({ client, since, reject }: Queued<Item, Outcome>, error?: unknown) => {
      if (client.closed) reject(new ConnectionClosed());
      else if (now - since > this.limits.wait) reject(error ?? overloaded());
      else return true;
      return false;
    };
    this.separated = this.separated.filter(({ queued, error }) => isWanted(queued, error));
    this.queue = this.queue.filter((queued) => isWanted(queued));
  }

  private nextBatch(): readonly Queued<Item, Outcome>[] {
    const separated = this.separated.shift();
    if (separated !== undefined) return [separated.queued];
    // Groups that fail, such as the shards of a server that hangs, must not occupy all batches in flight.
    const haveTheirShare =
      this.failingInFlight >= Math.max(1, Math.floor(this.limits.inFlight / 4));
    const first = haveTheirShare
      ? this.queue.find(({ group }) => !this.failing.has(group))
      : this.queue[0];
    if (first === undefined) return [];
    const { size, characters } = this.limits;
    if (first.group !== undefined) return this.take(first.group, size, characters);
    const half = Math.ceil(this.queue.length / 2);
    return this.take(undefined, Math.min(Math.max(MAX_UNDIVIDED, half), size), characters);
  }

  /** Takes the first items of a group from the queue: one, and those after it that the limits allow. */
  private take(group: unknown, size: number, characters: number): readonly Queued<Item, Outcome>[] {
    const taken: Queued<Item, Outcome>[] = [];
    let sum = 0;
    this.queue = this.queue.filter((queued) => {
      if (queued.group !== group || taken.length === size) return true;
      sum += queued.characters;
      if (sum > characters && taken.length > 0) return true;
      taken.push(queued);
      return false;
    });
    return taken;
  }

  private async send(batch: readonly Queued<Item, Outcome>[]): Promise<void> {
    const { group, since } = batch[0]!;
    const isFailing = this.failing.has(group);
    this.inFlight++;
    if (isFailing) this.failingInFlight++;
    this.metrics?.observe(batch.length, performance.now() - since);
    const settle = await this.run(batch.map(({ item }) => item)).then(
      (outcomes) => {
        this.failing.delete(group);
        return () => batch.forEach(({ resolve }, i) => resolve(outcomes[i]!));
      },
      (error: unknown) => this.fail(batch, error),
    );
    this.inFlight--;
    if (isFailing) this.failingInFlight--;
    // The next batch is sent before the responses are written, so that the database is not idle meanwhile.
    this.dispatch();
    settle();
  }

  /** @returns a function that rejects the items that failed for good */
  private fail(batch: readonly Queued<Item, Outcome>[], error: unknown): () => void {
    const { group } = batch[0]!;
    if (error instanceof ServiceError && group !== undefined) {
      // The server of this group is unavailable, or hangs: the servers of other groups may work.
      this.failing.add(group);
      const waiting = this.take(group, Infinity, Infinity);
      return () => [...batch, ...waiting].forEach(({ reject }) => reject(error));
    }
    if (error instanceof ServiceError && !(error instanceof PartUnavailableError)) {
      // The database is unavailable: the items in the queue would fail in the same way, only later.
      const waiting = [
        ...this.separated.splice(0).map(({ queued }) => queued),
        ...this.queue.splice(0),
      ];
      return () => [...batch, ...waiting].forEach(({ reject }) => reject(error));
    }
    if (batch.length === 1) return () => batch[0]!.reject(error);
    // Perhaps one item made the batch fail: sent alone, the others succeed.
    this.separated.push(...batch.map((queued) => ({ queued, error })));
    return () => undefined;
  }
}
