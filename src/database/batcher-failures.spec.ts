import { describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { controlledBatcher } from '../../test/database/controlled-batcher.js';
import { PartUnavailableError } from '../database/run-statement.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';

const AWAY = new ServiceError(ErrorCode.databaseUnavailable, 'away');
const PART_AWAY = new PartUnavailableError(new Error('a part'));
const ONE_OF_THEM = new Error('one of them');

const isOdd = (item: number) => item % 2;

describe('a batch that fails because of one of its items', () => {
  const advance = holdClock();

  it('fails only this item', async () => {
    const { add, finish, fail, sent, outcomes } = controlledBatcher();
    const three = new Error('three');
    await add(1, 3, 4);
    await fail(0, ONE_OF_THEM);
    await finish(1);
    await fail(2, three);
    await finish(3);
    expect(sent).toEqual([[1, 3, 4], [1], [3], [4]]);
    expect(outcomes).toEqual([10, three, 40]);
  });

  it('is sent again item by item, before the queue and within the limit of batches', async () => {
    const { batcher, add, addNow, finish, fail, sent, outcomes } = controlledBatcher({
      inFlight: 2,
    });
    await add(1, 2, 3);
    addNow(4);
    await fail(0, ONE_OF_THEM);
    expect(sent).toEqual([[1, 2, 3], [1], [2]]);
    expect(batcher.queueLength).toBe(2);
    await finish(1);
    await finish(2);
    expect(sent.slice(3)).toEqual([[3], [4]]);
    await finish(3);
    await finish(4);
    expect(outcomes).toEqual([10, 20, 30, 40]);
  });

  it('gives its error to the items for which no time is left', async () => {
    const { add, finish, fail, sent, outcomes } = controlledBatcher({ wait: 1500 });
    await add(1, 2, 3);
    await fail(0, ONE_OF_THEM);
    await advance(1500);
    await finish(1);
    expect(sent.slice(1)).toEqual([[1], [2]]);
    await advance(1);
    await finish(2);
    expect(outcomes).toEqual([10, 20, ONE_OF_THEM]);
    expect(sent).toHaveLength(3);
  });
});

describe('while the database is away', () => {
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

  it('items that waited to be sent alone fail, too', async () => {
    const { add, fail, sent, outcomes } = controlledBatcher();
    await add(1, 2);
    await fail(0, ONE_OF_THEM);
    await fail(1, AWAY);
    expect(outcomes).toEqual([AWAY, AWAY]);
    expect(sent).toEqual([[1, 2], [1]]);
  });
});

describe('while a part of the database is away', () => {
  it('only the items of that part fail', async () => {
    const { add, finish, fail, outcomes } = controlledBatcher();
    await add(1, 2);
    await add(4);
    await fail(0, PART_AWAY);
    await fail(1, PART_AWAY);
    await finish(2);
    await finish(3);
    expect(outcomes).toEqual([PART_AWAY, 20, 40]);
  });

  it('the items of its group fail, also those in the queue, and no others', async () => {
    const { add, finish, fail, sent, outcomes } = controlledBatcher({ groupOf: isOdd });
    await add(1, 2, 3, 4);
    await add(5, 6);
    await fail(0, AWAY);
    expect(outcomes).toEqual([AWAY, 'waiting', AWAY, 'waiting', AWAY, 'waiting']);
    await finish(1);
    expect(outcomes).toEqual([AWAY, 20, AWAY, 40, AWAY, 60]);
    expect(sent).toEqual([
      [1, 3],
      [2, 4, 6],
    ]);
  });

  it.each([{ size: 1 }, { characters: 1 }])(
    'all items of its group fail, also those for which one batch has no place (%o)',
    async (limit) => {
      const { add, fail, outcomes } = controlledBatcher({ groupOf: isOdd, ...limit });
      await add(1, 3, 5, 7);
      await fail(0, AWAY);
      expect(outcomes).toEqual([AWAY, AWAY, AWAY, AWAY]);
    },
  );

  it('three quarters of the batches are kept for groups that do not fail', async () => {
    const limits = { inFlight: 8, size: 1, groupOf: isOdd };
    const { add, finish, fail, sent, outcomes } = controlledBatcher(limits);
    await add(1);
    await fail(0, AWAY);
    await add(3, 5, 7, 9, 2, 4);
    expect(sent).toEqual([[1], [3], [5], [2], [4]]);
    await finish(1);
    // The group works again, so it has no limit any more.
    expect(sent.slice(5)).toEqual([[7], [9]]);
    for (const batch of [2, 3, 4, 5, 6]) await finish(batch);
    expect(outcomes).toEqual([AWAY, 30, 50, 70, 90, 20, 40]);
  });

  it.each([1, 4])('a group is tried again each time, of %i batches with one', async (inFlight) => {
    const limits = { inFlight, size: 1, groupOf: isOdd };
    const { add, fail, finish, sent, outcomes } = controlledBatcher(limits);
    await add(1);
    for (const batch of [0, 1, 2]) {
      await fail(batch, AWAY);
      await add(2 * batch + 3);
    }
    expect(sent).toEqual([[1], [3], [5], [7]]);
    await finish(3);
    expect(outcomes).toEqual([AWAY, AWAY, AWAY, 70]);
  });
});
