import type { Client } from '../../src/http/client.js';
import { Batcher, type BatchLimits, type BatchObserver } from '../../src/database/batcher.js';
import { settled } from '../setup/time/settled.js';

/** A batcher whose batches end when the test says so. An item is the number of its characters, and its outcome ten times that. */
export interface ControlledBatcher {
  readonly batcher: Batcher<number, number>;
  /** The items of each batch that was sent. */
  readonly sent: readonly (readonly number[])[];
  /** What became of each item, in the order in which they were added: 'waiting', its outcome or its error. */
  readonly outcomes: readonly unknown[];
  /** Adds items, and waits until they could be sent. */
  readonly add: (...items: number[]) => Promise<void>;
  /** Adds items like requests that arrive now, and does not wait. */
  readonly addNow: (...items: number[]) => void;
  /** Adds an item of a client that gives up when the test sets `closed`, and waits until it could be sent. */
  readonly addFor: (client: Client, item: number) => Promise<void>;
  /** Ends a batch, and waits until the next ones could be sent. */
  readonly finish: (batch: number) => Promise<void>;
  readonly fail: (batch: number, error: Error) => Promise<void>;
}

export function controlledBatcher(
  limits: Partial<BatchLimits<number>> = {},
  metrics?: BatchObserver,
): ControlledBatcher {
  const sent: (readonly number[])[] = [];
  const ends: PromiseWithResolvers<number[]>[] = [];
  const outcomes: unknown[] = [];
  const batcher = new Batcher<number, number>(
    (items) => {
      const end = Promise.withResolvers<number[]>();
      sent.push(items);
      ends.push(end);
      return end.promise;
    },
    Object.assign(limits, {
      size: 10,
      characters: Infinity,
      inFlight: 1,
      queued: 100,
      wait: Infinity,
      ...limits,
    }),
    metrics,
  );
  const addOne = (item: number, client: Client) => {
    const position = outcomes.push('waiting') - 1;
    batcher.add(item, item, client).then(
      (outcome) => (outcomes[position] = outcome),
      (error: unknown) => (outcomes[position] = error),
    );
  };
  const addNow = (...items: number[]) => {
    for (const item of items) addOne(item, { closed: false });
  };
  return {
    batcher,
    sent,
    outcomes,
    addNow,
    add(...items) {
      addNow(...items);
      return settled();
    },
    addFor(client, item) {
      addOne(item, client);
      return settled();
    },
    finish(batch) {
      ends[batch]!.resolve(sent[batch]!.map((item) => item * 10));
      return settled();
    },
    fail(batch, error) {
      ends[batch]!.reject(error);
      return settled();
    },
  };
}
