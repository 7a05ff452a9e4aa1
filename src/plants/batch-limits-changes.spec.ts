import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { useBatchLimits } from '../../test/plants/batch-limits.js';
import { usePlantsDatabase } from '../../test/plants/plants-database.js';
import { ErrorCode } from '../errors/error-codes.js';

const RETRY_INTERVAL_MS = 1000;
const UNKNOWN = 'It is unknown whether the plants are distributed.';
const DISTRIBUTED =
  'The plants are distributed over 4 shards: batches of up to 32 plants, 9 at a time.';
const IN_ONE_TABLE = 'The plants are in one table: batches of up to 256 plants, 1 at a time.';

describe('the limits of batches', () => {
  const database = usePlantsDatabase();
  const services = useBatchLimits(database);

  beforeEach(() => holdTime());
  afterEach(() => void jest.useRealTimers());

  /** Replaces the connections, as after a failover, and waits until all looks have ended. */
  async function reconnect(): Promise<void> {
    await database.lose();
    await database.plants.find([]);
    await database.idle();
  }

  describe('after a new connection', () => {
    it('are those of the database to which it leads, and the log tells of each change once', async () => {
      const { limits } = await services.start();
      await services.distribute();
      await reconnect();
      expect(limits).toMatchObject({ size: 32, inFlight: 9 });
      await reconnect();
      expect(services.messages()).toEqual([DISTRIBUTED]);
      await services.undistribute();
      await reconnect();
      expect(limits).toEqual({
        size: 256,
        characters: 2 ** 20,
        inFlight: 1,
        queued: 1000,
        wait: 20_000,
      });
      expect(services.messages()).toEqual([DISTRIBUTED, IN_ONE_TABLE]);
    });

    it('are looked up once, even if the lookup itself makes a connection', async () => {
      const { pool, lose, idle } = database;
      await lose();
      let statements = 0;
      pool.on('acquire', () => statements++);
      await services.start();
      await idle();
      expect(statements).toBe(1);
    });
  });

  describe('while it is unknown whether the plants are distributed', () => {
    /** Lets time pass, and waits until all looks have ended. */
    const pass = async (milliseconds: number) => {
      jest.advanceTimersByTime(milliseconds);
      await database.idle();
    };

    it('stay as they were', async () => {
      await services.distribute();
      const service = await services.start();
      await database.lose();
      // The connection breaks when the service begins to look.
      database.pool.once('connect', () => database.proxy.cut());
      await database.plants.find([]).catch(() => undefined);
      await database.idle();
      expect(services.messages()).toEqual([DISTRIBUTED, UNKNOWN]);
      expect(service.isByShard).toBe(true);
      expect(service.limits).toMatchObject({ size: 32, inFlight: 9 });
    });

    it('are looked up once a second until the database responds', async () => {
      const { proxy } = database;
      await database.lose();
      proxy.cut();
      const service = await services.start();
      const before = proxy.connections;
      await pass(RETRY_INTERVAL_MS - 1);
      expect(proxy.connections).toBe(before);
      await pass(1);
      expect(proxy.connections).toBeGreaterThan(before);
      proxy.restore();
      await services.distribute();
      await pass(RETRY_INTERVAL_MS);
      expect(service.isByShard).toBe(true);
      await services.undistribute();
      await pass(10 * RETRY_INTERVAL_MS);
      expect(service.isByShard).toBe(true);
    });

    it('are not looked up after each connection that an outage leads to', async () => {
      const { proxy, plants, idle } = database;
      await database.lose();
      proxy.cut();
      const service = await services.start();
      proxy.restore();
      await services.distribute();
      await plants.find([]);
      await idle();
      expect(service.isByShard).toBe(false);
      await pass(RETRY_INTERVAL_MS);
      expect(service.isByShard).toBe(true);
      await services.undistribute();
      await reconnect();
      expect(service.isByShard).toBe(false);
    });

    it('are in the log once in each outage, with the reason', async () => {
      const { proxy } = database;
      await database.lose();
      proxy.cut();
      await services.start();
      await pass(RETRY_INTERVAL_MS);
      expect(services.entries).toEqual([
        expect.objectContaining({
          level: 40,
          msg: UNKNOWN,
          err: expect.objectContaining({ code: ErrorCode.databaseUnavailable }),
        }),
      ]);
      proxy.restore();
      await pass(RETRY_INTERVAL_MS);
      await database.lose();
      database.pool.once('connect', () => proxy.cut());
      await database.plants.find([]).catch(() => undefined);
      await database.idle();
      expect(services.messages()).toEqual([UNKNOWN, UNKNOWN]);
    });
  });

  describe('when the service stops', () => {
    it('are not looked up after a new connection', async () => {
      const service = await services.start();
      service.onModuleDestroy();
      await services.distribute();
      await reconnect();
      expect(service.isByShard).toBe(false);
    });

    it.each(['before', 'after'])(
      'leave no timer, if it does so %s a lookup fails',
      async (when) => {
        await database.lose();
        database.proxy.cut();
        const service = services.create();
        const looked = service.onApplicationBootstrap();
        if (when === 'after') await looked;
        service.onModuleDestroy();
        await looked;
        expect(services.messages()).toEqual([UNKNOWN]);
        expect(jest.getTimerCount()).toBe(0);
      },
    );
  });
});
