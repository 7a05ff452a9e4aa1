import { describe, expect, it, jest } from '@jest/globals';
import { settled } from '../../test/setup/settled.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { PartUnavailableError } from '../database/run-statement.js';
import { Batcher, type BatchLimits } from './batcher.js';

/** A batcher whose batches end when the test calls `finish`. */
function controlled(limits: Partial<BatchLimits<number>> = {}) {
  const batches: {
    items: readonly number[];
    resolve: (outcomes: number[]) => void;
    reject: (error: unknown) => void;
  }[] = [];
  const batcher = new Batcher<number, number>(
    (items) => new Promise((resolve, reject) => batches.push({ items, resolve, reject })),
    { size: 10, inFlight: 1, queued: 100, wait: Infinity, ...limits },
  );
  const finish = (index: number) => {
    const { items, resolve } = batches[index]!;
    resolve(items.map((item) => item * 10));
  };
  return { batcher, batches, finish, itemsOf: () => batches.map(({ items }) => items) };
}

describe('Batcher', () => {
  it('sends a lone item in the turn of the event loop in which it was added', async () => {
    const { batcher, itemsOf } = controlled();
    void batcher.add(1);
    await settled();
    expect(itemsOf()).toEqual([[1]]);
  });

  it('combines the items that are added in one turn of the event loop', async () => {
    const { batcher, itemsOf } = controlled();
    void batcher.add(1);
    await Promise.resolve();
    void batcher.add(2);
    await settled();
    expect(itemsOf()).toEqual([[1, 2]]);
  });

  it('combines the items that are added while a batch is in flight, and gives each its own outcome', async () => {
    const { batcher, itemsOf, finish } = controlled();
    const outcomes = [batcher.add(1)];
    await settled();
    outcomes.push(...[2, 3, 4].map((item) => batcher.add(item)));
    await settled();
    expect(itemsOf()).toEqual([[1]]);
    finish(0);
    await settled();
    expect(itemsOf()).toEqual([[1], [2, 3, 4]]);
    finish(1);
    expect(await Promise.all(outcomes)).toEqual([10, 20, 30, 40]);
  });

  it('exceeds neither the size of a batch nor the number of batches in flight', async () => {
    const { batcher, itemsOf, finish } = controlled({ size: 2, inFlight: 2 });
    const outcomes = [1, 2, 3, 4, 5, 6].map((item) => batcher.add(item));
    await settled();
    expect(itemsOf()).toEqual([
      [1, 2],
      [3, 4],
    ]);
    finish(0);
    await settled();
    expect(itemsOf()).toEqual([
      [1, 2],
      [3, 4],
      [5, 6],
    ]);
    finish(1);
    finish(2);
    expect(await Promise.all(outcomes)).toEqual([10, 20, 30, 40, 50, 60]);
  });

  it('puts only items of one group into a batch, and keeps their order', async () => {
    const { batcher, batches, itemsOf, finish } = controlled({
      size: 2,
      groupOf: (item) => item % 2,
    });
    const outcomes = [1, 2, 3, 4, 5].map((item) => batcher.add(item));
    for (let i = 0; i < 3; i++) {
      while (batches.length === i) await settled();
      finish(i);
    }
    expect(await Promise.all(outcomes)).toEqual([10, 20, 30, 40, 50]);
    expect(itemsOf()).toEqual([[1, 3], [2, 4], [5]]);
  });

  it('sends half of a long queue', async () => {
    const { batcher, batches, finish } = controlled({ size: 100, queued: 1000 });
    const items = Array.from({ length: 200 }, (_, i) => i);
    const outcomes = items.map((item) => batcher.add(item));
    for (let i = 0; i < 4; i++) {
      while (batches.length === i) await settled();
      finish(i);
    }
    expect(await Promise.all(outcomes)).toEqual(items.map((item) => item * 10));
    expect(batches.map((batch) => batch.items.length)).toEqual([100, 50, 32, 18]);
  });

  it('refuses more items than the queue may hold', async () => {
    const { batcher, finish } = controlled({ queued: 2 });
    const accepted = [batcher.add(1)];
    await settled();
    accepted.push(batcher.add(2), batcher.add(3));
    await expect(batcher.add(4)).rejects.toMatchObject({ code: ErrorCode.overloaded });
    finish(0);
    await settled();
    finish(1);
    expect(await Promise.all(accepted)).toEqual([10, 20, 30]);
  });

  it('refuses an item that was in the queue for too long', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    const { batcher, batches, itemsOf, finish } = controlled({ wait: 1500 });
    const first = batcher.add(1);
    await settled();
    const outcomes = Promise.allSettled([first, batcher.add(2)]);
    jest.advanceTimersByTime(1501);
    const inTime = batcher.add(3);
    finish(0);
    while (batches.length < 2) await settled();
    finish(1);
    expect(await outcomes).toMatchObject([
      { value: 10 },
      { reason: { code: ErrorCode.overloaded } },
    ]);
    expect(await inTime).toBe(30);
    expect(itemsOf()).toEqual([[1], [3]]);
    jest.useRealTimers();
  });

  it('an item that fails does not fail the other items of its batch', async () => {
    const batcher = new Batcher<number, number>(
      async (items) => {
        await settled();
        if (items.includes(3)) throw new Error('three');
        return items.map((item) => item * 10);
      },
      { size: 10, inFlight: 1, queued: 100, wait: Infinity },
    );
    const outcomes = await Promise.allSettled([1, 2, 3, 4].map((item) => batcher.add(item)));
    expect(outcomes).toMatchObject([
      { value: 10 },
      { value: 20 },
      { reason: { message: 'three' } },
      { value: 40 },
    ]);
  });

  it('sends the items of a failed batch alone, before the queue and within the limit of batches', async () => {
    const { batcher, batches, itemsOf, finish } = controlled({ inFlight: 2 });
    const outcomes = [1, 2, 3].map((item) => batcher.add(item));
    await settled();
    batches[0]!.reject(new Error('one of them'));
    outcomes.push(batcher.add(4));
    await settled();
    expect(itemsOf()).toEqual([[1, 2, 3], [1], [2]]);
    finish(1);
    await settled();
    finish(2);
    finish(3);
    await settled();
    finish(4);
    expect(await Promise.all(outcomes)).toEqual([10, 20, 30, 40]);
    expect(itemsOf()).toEqual([[1, 2, 3], [1], [2], [3], [4]]);
  });

  it('gives an item of a failed batch the error of the batch when no time is left', async () => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick'] });
    const { batcher, batches, itemsOf, finish } = controlled({ wait: 1500 });
    const outcomes = Promise.allSettled([1, 2].map((item) => batcher.add(item)));
    await settled();
    batches[0]!.reject(new Error('one of them'));
    await settled();
    jest.advanceTimersByTime(1501);
    finish(1);
    expect(await outcomes).toMatchObject([{ value: 10 }, { reason: { message: 'one of them' } }]);
    expect(itemsOf()).toEqual([[1, 2], [1]]);
    jest.useRealTimers();
  });

  it('while a part of the database is away, fails only the items of that part', async () => {
    const batcher = new Batcher<number, number>(
      async (items) => {
        await settled();
        if (items.some((item) => item % 2 === 1)) throw new PartUnavailableError(new Error('odd'));
        return items.map((item) => item * 10);
      },
      { size: 3, inFlight: 1, queued: 100, wait: Infinity },
    );
    const outcomes = await Promise.allSettled([1, 2, 3, 4, 5, 6].map((item) => batcher.add(item)));
    const odd = { reason: { code: ErrorCode.databaseUnavailable } };
    expect(outcomes).toMatchObject([odd, { value: 20 }, odd, { value: 40 }, odd, { value: 60 }]);
  });

  it('fails only the items of a group whose server is away', async () => {
    const { batcher, batches, finish } = controlled({ groupOf: (item) => item % 2 });
    const outcomes = Promise.allSettled([1, 2, 3, 4].map((item) => batcher.add(item)));
    await settled();
    const later = Promise.allSettled([batcher.add(5), batcher.add(6)]);
    const away = new ServiceError(ErrorCode.databaseUnavailable, 'away');
    batches[0]!.reject(away);
    for (let i = 1; i < 2; i++) {
      while (batches.length === i) await settled();
      finish(i);
    }
    const refused = { reason: away };
    expect(await outcomes).toMatchObject([refused, { value: 20 }, refused, { value: 40 }]);
    expect(await later).toMatchObject([refused, { value: 60 }]);
  });

  it('keeps three quarters of the batches for groups that do not fail', async () => {
    const { batcher, batches, itemsOf, finish } = controlled({
      inFlight: 4,
      size: 1,
      groupOf: (item) => item % 2,
    });
    const away = new ServiceError(ErrorCode.databaseUnavailable, 'away');
    const first = batcher.add(1);
    await settled();
    batches[0]!.reject(away);
    await expect(first).rejects.toBe(away);
    const outcomes = [3, 5, 7, 2, 4].map((item) => batcher.add(item));
    await settled();
    expect(itemsOf()).toEqual([[1], [3], [2], [4]]);
    finish(1);
    await settled();
    // The group works again, so it has no limit any more.
    expect(itemsOf()).toEqual([[1], [3], [2], [4], [5], [7]]);
    for (const i of [2, 3, 4, 5]) finish(i);
    expect(await Promise.all(outcomes)).toEqual([30, 50, 70, 20, 40]);
  });

  it('fails the whole queue when the database is away, and accepts later items', async () => {
    const { batcher, batches, finish } = controlled();
    const first = batcher.add(1);
    await settled();
    const failing = Promise.allSettled([first, batcher.add(2), batcher.add(3)]);
    batches[0]!.reject(new ServiceError(ErrorCode.databaseUnavailable, 'away'));
    expect(await failing).toMatchObject(Array(3).fill({ reason: { message: 'away' } }));
    const later = batcher.add(4);
    await settled();
    finish(1);
    expect(await later).toBe(40);
  });

  it('fails items that are to be sent alone, too, when the database is away', async () => {
    const { batcher, batches, itemsOf } = controlled();
    const failing = Promise.allSettled([1, 2].map((item) => batcher.add(item)));
    await settled();
    batches[0]!.reject(new Error('one of them'));
    await settled();
    batches[1]!.reject(new ServiceError(ErrorCode.databaseUnavailable, 'away'));
    expect(await failing).toMatchObject(Array(2).fill({ reason: { message: 'away' } }));
    expect(itemsOf()).toEqual([[1, 2], [1]]);
  });

  it('obeys limits that change', async () => {
    const limits = { size: 2, inFlight: 1, queued: 100, wait: Infinity };
    const sent: number[][] = [];
    const batcher = new Batcher<number, number>(async (items) => {
      sent.push([...items]);
      await settled();
      return [...items];
    }, limits);
    await Promise.all([1, 2].map((item) => batcher.add(item)));
    Object.assign(limits, { size: 1, inFlight: 2 });
    await Promise.all([3, 4].map((item) => batcher.add(item)));
    expect(sent).toEqual([[1, 2], [3], [4]]);
  });
});
