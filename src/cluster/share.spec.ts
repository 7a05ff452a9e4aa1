import { describe, expect, it } from '@jest/globals';
import type { AppConfig } from '../config/config.js';
import { readConfig } from '../config/config.js';
import { shareOf } from './share.js';

/** The shares of all workers. */
function sharesOf(env: Record<string, string>): AppConfig[] {
  const config = readConfig({ DATABASE_URL: 'postgres://h/d', ...env }) as AppConfig;
  return Array.from({ length: config.workers }, (_, i) => shareOf(config, i + 1));
}

describe('shareOf', () => {
  it('shares out the limits of the instance, the remainder to the first', () => {
    const shares = sharesOf({
      WEB_CONCURRENCY: '4',
      DATABASE_POOL_SIZE: '10',
      MAX_CONNECTIONS: '4001',
      MAX_PENDING_REQUESTS: '1002',
      AUTH_FAILURES_PER_MINUTE: '303',
    });
    expect(shares.map(({ database }) => database.poolSize)).toEqual([3, 3, 2, 2]);
    expect(shares.map(({ http }) => http.maxConnections)).toEqual([1001, 1000, 1000, 1000]);
    expect(shares.map(({ http }) => http.maxPendingRequests)).toEqual([251, 251, 250, 250]);
    expect(shares.map(({ auth }) => auth.failuresPerMinute)).toEqual([76, 76, 76, 75]);
  });

  it('gives everybody something', () => {
    const shares = sharesOf({
      WEB_CONCURRENCY: '3',
      MAX_CONNECTIONS: '1',
      MAX_PENDING_REQUESTS: '2',
      AUTH_FAILURES_PER_MINUTE: '1',
    });
    expect(shares.map(({ http }) => http.maxConnections)).toEqual([1, 1, 1]);
    expect(shares.map(({ http }) => http.maxPendingRequests)).toEqual([1, 1, 1]);
    expect(shares.map(({ auth }) => auth.failuresPerMinute)).toEqual([1, 1, 1]);
  });

  it('never takes more connections to the database than it was given', () => {
    for (let pool = 1; pool <= 40; pool++) {
      for (let workers = 1; workers <= pool; workers++) {
        const shares = sharesOf({
          WEB_CONCURRENCY: String(workers),
          DATABASE_POOL_SIZE: String(pool),
        });
        const sizes = shares.map(({ database }) => database.poolSize);
        expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(pool);
        expect(Math.min(...sizes)).toBeGreaterThan(0);
      }
    }
  });

  it.each([
    [10, 4, 2, [1, 1, 1, 1]],
    [40, 4, 10, [3, 3, 2, 2]],
    [4, 4, 2, [1, 1, 1, 1]],
    [40, 4, 100, [9, 9, 9, 9]],
  ])(
    'of a pool of %d for %d workers, %d batches are shared out and leave a connection for tokens where there are two',
    (pool, workers, batches, expected) => {
      const shares = sharesOf({
        WEB_CONCURRENCY: String(workers),
        DATABASE_POOL_SIZE: String(pool),
        DATABASE_BATCHES: String(batches),
      });
      expect(shares.map(({ database }) => database.batchesInFlight)).toEqual(expected);
    },
  );

  it('leaves everything else as it was set', () => {
    const config = readConfig({
      WEB_CONCURRENCY: '2',
      DATABASE_URL: 'postgres://h/d',
    }) as AppConfig;
    const { http, database, ...others } = shareOf(config, 1);
    expect(others).toEqual({
      ...config,
      auth: { ...config.auth, failuresPerMinute: 150 },
      http: undefined,
      database: undefined,
    });
    expect(http).toMatchObject({ port: 3000, bodyLimit: 65536 });
    expect(database).toMatchObject({ url: 'postgres://h/d', batchSize: 256, timeout: 1500 });
  });
});
