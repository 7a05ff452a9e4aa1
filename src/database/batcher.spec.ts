import { describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { controlledBatcher } from '../../test/database/controlled-batcher.js';
import { settled } from '../../test/setup/time/settled.js';
import { RowsUnavailableError, databaseUnavailable, overloaded } from '../errors/errors.js';
import { ConnectionClosed, ServiceError } from '../errors/service-error.js';

const OVERLOADED: unknown = expect.objectContaining({ code: overloaded.code });
const CLOSED: unknown = expect.any(ConnectionClosed);
const AWAY = new ServiceError(databaseUnavailable, 'away');

const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1);

describe('items that are sent in batches', () => {
  it('are sent with all other items of the turn of the event loop in which they were added', async () => {
    const { addNow, sent } = controlledBatcher({ inFlight: 2 });
    addNow(1);
    setImmediate(() => addNow(3));
    await Promise.resolve();
    addNow(2);
    setImmediate(() => addNow(4));
    await settled();
    await settled();
    expect(sent).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it('wait while `inFlight` batches are in flight', async () => {
    const { add, finish, sent } = controlledBatcher({ size: 2, inFlight: 2 });
    await add(1, 2, 3, 4, 5, 6);
    expect(sent).toEqual([
      [1, 2],
      [3, 4],
    ]);
    await finish(0);
    expect(sent.slice(2)).toEqual([[5, 6]]);
  });

  it('are at most `size` in a batch, and get their own outcomes', async () => {
    const { add, finish, sent, outcomes } = controlledBatcher({ size: 2 });
    await add(1, 2, 3);
    for (const batch of [0, 1]) await finish(batch);
    expect(sent).toEqual([[1, 2], [3]]);
    expect(outcomes).toEqual([10, 20, 30]);
  });

  it('stay within the characters of a batch, except an item that alone exceeds them', async () => {
    const { add, finish, sent, outcomes } = controlledBatcher({ characters: 10 });
    await add(4, 6, 1, 11, 2, 3);
    for (const batch of [0, 1, 2, 3]) await finish(batch);
    expect(sent).toEqual([[4, 6], [1], [11], [2, 3]]);
    expect(outcomes).toEqual([40, 60, 10, 110, 20, 30]);
  });

  it('share a batch only with items of their group, up to its size and its characters, and keep their order', async () => {
    const { add, finish, sent, outcomes } = controlledBatcher({
      size: 2,
      characters: 6,
      groupOf: (item) => item % 2,
    });
    await add(1, 2, 3, 5, 4, 7);
    for (const batch of [0, 1, 2, 3]) await finish(batch);
    expect(sent).toEqual([[1, 3], [2, 4], [5], [7]]);
    expect(outcomes).toEqual([10, 20, 30, 50, 40, 70]);
  });

  it('leave a long queue half at a time, but at least 32', async () => {
    const { add, finish, sent, outcomes } = controlledBatcher({ size: 100, queued: 1000 });
    await add(...upTo(200));
    for (const batch of [0, 1, 2, 3]) await finish(batch);
    expect(sent.map(({ length }) => length)).toEqual([100, 50, 32, 18]);
    expect(outcomes).toEqual(upTo(200).map((item) => item * 10));
  });

  it('obey limits that change', async () => {
    const limits = { size: 2, inFlight: 1 };
    const { add, finish, sent } = controlledBatcher(limits);
    await add(1, 2);
    await finish(0);
    Object.assign(limits, { size: 1, inFlight: 2 });
    await add(3, 4);
    expect(sent).toEqual([[1, 2], [3], [4]]);
  });

  it('are refused while the queue is full', async () => {
    const { batcher, add, finish, outcomes } = controlledBatcher({ queued: 2 });
    await add(1);
    await add(2, 3, 4);
    expect(outcomes).toEqual(['waiting', 'waiting', 'waiting', OVERLOADED]);
    expect(batcher.queueLength).toBe(2);
    await finish(0);
    expect(batcher.queueLength).toBe(0);
    await add(5);
    await finish(1);
    await finish(2);
    expect(outcomes).toEqual([10, 20, 30, OVERLOADED, 50]);
  });
});

describe('an item in the queue whose client gives up', () => {
  it('is not in the next batch', async () => {
    const { batcher, add, addFor, finish, sent, outcomes } = controlledBatcher();
    const client = { closed: false };
    await add(1);
    await addFor(client, 2);
    await add(3);
    client.closed = true;
    expect(batcher.queueLength).toBe(1);
    await finish(0);
    expect(sent).toEqual([[1], [3]]);
    await finish(1);
    expect(outcomes).toEqual([10, CLOSED, 30]);
  });

  it('is not sent alone, either, when its batch has failed', async () => {
    const { add, addFor, fail, finish, sent, outcomes } = controlledBatcher();
    const client = { closed: false };
    await add(1);
    await add(2);
    await addFor(client, 3);
    await add(4);
    await finish(0);
    client.closed = true;
    await fail(1, new Error('one of them'));
    await finish(2);
    await finish(3);
    expect(sent).toEqual([[1], [2, 3, 4], [2], [4]]);
    expect(outcomes).toEqual([10, 20, CLOSED, 40]);
  });

  it('leaves its place to a new item when the queue is full', async () => {
    const { add, addFor, outcomes } = controlledBatcher({ queued: 2 });
    const client = { closed: false };
    await add(1);
    await addFor(client, 2);
    await addFor(client, 3);
    client.closed = true;
    await add(4, 5, 6);
    expect(outcomes).toEqual(['waiting', CLOSED, CLOSED, 'waiting', 'waiting', OVERLOADED]);
  });

  it('gets its outcome if it was sent already', async () => {
    const { addFor, finish, outcomes } = controlledBatcher();
    const client = { closed: false };
    await addFor(client, 1);
    client.closed = true;
    await finish(0);
    expect(outcomes).toEqual([10]);
  });
});

describe('the time of an item in the queue', () => {
  const advance = holdClock();

  it('has a limit, after which the item is refused and those after it are sent', async () => {
    const { add, finish, sent, outcomes } = controlledBatcher({ wait: 1500 });
    await add(1);
    await add(2);
    await advance(1);
    await add(3);
    await advance(1500);
    await finish(0);
    expect(sent).toEqual([[1], [3]]);
    await finish(1);
    expect(outcomes).toEqual([10, OVERLOADED, 30]);
  });

  it('is observed, with the number of items in the batch', async () => {
    const observed: [size: number, wait: number][] = [];
    const { batcher, add, finish } = controlledBatcher(
      {},
      { observe: (...batch) => void observed.push(batch) },
    );
    await add(1);
    await add(2);
    await advance(250);
    await add(3);
    expect(batcher.queueLength).toBe(2);
    await finish(0);
    expect(observed).toEqual([
      [1, 0],
      [2, 250],
    ]);
  });
});

describe('when a batch fails because of one of its items', () => {
  const advance = holdClock();

  it.each([
    ['an error', new Error('one of them')],
    ['a locked row', new RowsUnavailableError(new Error('one of them'))],
  ])('only this item fails (%s)', async (_why, error) => {
    const { add, finish, fail, sent, outcomes } = controlledBatcher();
    await add(1, 3, 4);
    await add(5);
    await fail(0, error);
    await finish(1);
    await fail(2, error);
    await finish(3);
    await finish(4);
    expect(sent).toEqual([[1, 3, 4], [1], [3], [4], [5]]);
    expect(outcomes).toEqual([10, error, 40, 50]);
  });

  it('an item whose time is up gets the error of its batch, and is not sent alone', async () => {
    const error = new Error('one of them');
    const { add, finish, fail, sent, outcomes } = controlledBatcher({ wait: 1500 });
    await add(1, 2, 3, 4, 5, 6);
    await fail(0, error);
    await advance(1500);
    await finish(1);
    expect(sent.slice(1)).toEqual([[1], [2], [3], [4], [5]]);
    await advance(1);
    for (const batch of [2, 3, 4, 5]) await finish(batch);
    expect(outcomes).toEqual([10, 20, 30, 40, 50, error]);
    expect(sent).toHaveLength(6);
  });
});

describe('while the database is away', () => {
  it('the items of a failed batch that are not sent yet fail, too', async () => {
    const { add, fail, sent, outcomes } = controlledBatcher();
    await add(1, 2, 3, 4, 5, 6);
    await fail(0, new Error('one of them'));
    await add(7);
    for (const batch of [1, 2, 3, 4]) await fail(batch, AWAY);
    expect(outcomes).toEqual(Array(7).fill(AWAY));
    expect(sent).toHaveLength(5);
  });

  it('the whole queue fails, and items that are added later are sent', async () => {
    const { add, finish, fail, outcomes } = controlledBatcher();
    await add(1);
    await add(2, 3);
    await fail(0, AWAY);
    expect(outcomes).toEqual([AWAY, AWAY, AWAY]);
    await add(4);
    await finish(1);
    expect(outcomes[3]).toBe(40);
  });
});
