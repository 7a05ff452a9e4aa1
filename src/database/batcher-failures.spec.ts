import { describe, expect, it } from '@jest/globals';
import { controlledBatcher } from '../../test/database/controlled-batcher.js';
import { holdClock } from '../../test/setup/time/clock.js';
import { RowsUnavailableError, databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';

const AWAY = new ServiceError(databaseUnavailable, 'away');

describe('a batch that fails because of one of its items', () => {
  const advance = holdClock();

  it.each([
    ['an error', new Error('one of them')],
    ['a locked row', new RowsUnavailableError(new Error('one of them'))],
  ])('fails only this item (%s)', async (_why, error) => {
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

  it('gives its error to the items for which no time is left', async () => {
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
