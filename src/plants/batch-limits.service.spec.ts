import { beforeEach, describe, expect, it } from '@jest/globals';
import { useBatchLimits } from '../../test/plants/batch-limits.js';
import { usePlantsDatabase } from '../../test/plants/plants-database.js';

const plantOf = (id: bigint) => ({ id, name: 'a' });

const characters = 2 ** 20;

describe('the limits of batches', () => {
  const services = useBatchLimits(usePlantsDatabase());

  describe('of plants in one table', () => {
    it('allow one batch of many plants at a time, of any plants', async () => {
      const service = await services.start();
      expect(service.limits).toEqual({
        size: 256,
        characters,
        inFlight: 1,
        queued: 1000,
        wait: 20_000,
      });
      expect(service.isByShard).toBe(false);
      expect(services.messages()).toEqual([]);
    });

    it('are in force before the database was asked', () => {
      const { limits, isByShard } = services.create();
      expect(limits).toEqual({ size: 256, characters, inFlight: 1, queued: 1000, wait: 20_000 });
      expect(isByShard).toBe(false);
    });

    it('are those of the settings, where there are some', async () => {
      const { limits } = await services.start({
        DATABASE_BATCH_SIZE: '5',
        DATABASE_BATCHES: '3',
        DATABASE_TIMEOUT_MS: '700',
        MAX_PENDING_REQUESTS: '20',
      });
      expect(limits).toEqual({ size: 5, characters, inFlight: 3, queued: 20, wait: 700 });
    });
  });

  describe('of plants that Citus distributes', () => {
    beforeEach(() => services.distribute());

    it('allow small batches, in all connections but one, of plants of one shard', async () => {
      const { limits, isByShard } = await services.start();
      expect(limits).toMatchObject({ size: 32, inFlight: 9, queued: 1000, wait: 20_000 });
      expect(isByShard).toBe(true);
      // Their hashes are in shards.spec.ts.
      expect([1n, 0n, -1n].map((id) => limits.groupOf!(plantOf(id)))).toEqual([0, 1, 2]);
      expect(services.messages()).toEqual([
        'The plants are distributed over 4 shards: batches of up to 32 plants, 9 at a time.',
      ]);
      expect(services.entries[0]!.level).toBe(30);
    });

    it('allow one batch where there is only one connection', async () => {
      const { limits } = await services.start({ DATABASE_POOL_SIZE: '1' });
      expect(limits).toMatchObject({ size: 32, inFlight: 1 });
    });

    it('are those of the settings, where there are some', async () => {
      const { limits } = await services.start({ DATABASE_BATCH_SIZE: '5', DATABASE_BATCHES: '3' });
      expect(limits).toMatchObject({ size: 5, inFlight: 3 });
    });
  });
});
