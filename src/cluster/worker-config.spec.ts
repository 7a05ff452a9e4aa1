import { describe, expect, it } from '@jest/globals';
import type { AppConfig } from '../config/config.js';
import { readConfig } from '../config/config.js';
import { workerConfig } from './worker-config.js';

/** The configs of all workers. */
function configsOf(env: Record<string, string>): AppConfig[] {
  const config = readConfig({ DATABASE_URL: 'postgres://h/d', ...env }) as AppConfig;
  return Array.from({ length: config.workers }, (_, i) => workerConfig(config, i + 1));
}

describe('workerConfig', () => {
  it('divides the limits of the service, with the remainder to the first workers', () => {
    const configs = configsOf({
      WEB_CONCURRENCY: '4',
      DATABASE_POOL_SIZE: '10',
      MAX_CONNECTIONS: '4001',
      MAX_PENDING_REQUESTS: '1002',
      AUTH_FAILURES_PER_MINUTE: '303',
    });
    expect(configs.map(({ database }) => database.poolSize)).toEqual([3, 3, 2, 2]);
    expect(configs.map(({ http }) => http.maxConnections)).toEqual([1001, 1000, 1000, 1000]);
    expect(configs.map(({ http }) => http.maxPendingRequests)).toEqual([251, 251, 250, 250]);
    expect(configs.map(({ auth }) => auth.failuresPerMinute)).toEqual([76, 76, 76, 75]);
  });

  it('gives each worker at least 1 of each limit', () => {
    const configs = configsOf({
      WEB_CONCURRENCY: '3',
      MAX_CONNECTIONS: '1',
      MAX_PENDING_REQUESTS: '2',
      AUTH_FAILURES_PER_MINUTE: '1',
    });
    expect(configs.map(({ http }) => http.maxConnections)).toEqual([1, 1, 1]);
    expect(configs.map(({ http }) => http.maxPendingRequests)).toEqual([1, 1, 1]);
    expect(configs.map(({ auth }) => auth.failuresPerMinute)).toEqual([1, 1, 1]);
  });

  it('gives the workers together all connections to the database, and each at least one', () => {
    for (let pool = 1; pool <= 40; pool++) {
      for (let workers = 1; workers <= pool; workers++) {
        const configs = configsOf({
          WEB_CONCURRENCY: String(workers),
          DATABASE_POOL_SIZE: String(pool),
        });
        const sizes = configs.map(({ database }) => database.poolSize);
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
    'with a pool of %d, %d workers and %d batches: a worker with two connections or more reserves one for tokens',
    (pool, workers, batches, expected) => {
      const configs = configsOf({
        WEB_CONCURRENCY: String(workers),
        DATABASE_POOL_SIZE: String(pool),
        DATABASE_BATCHES: String(batches),
      });
      expect(configs.map(({ database }) => database.batchesInFlight)).toEqual(expected);
    },
  );

  // For a new setting, this test fails until the table says whether workers divide it.
  it('changes the limits of the service, and no other setting', () => {
    const config = readConfig({
      WEB_CONCURRENCY: '2',
      DATABASE_URL: 'postgres://h/d',
      DATABASE_BATCHES: '4',
    }) as AppConfig;
    const changed = entriesOf(config).map(([key, value], i) => {
      const isDivided = value !== entriesOf(workerConfig(config, 1))[i]![1];
      return [key, isDivided ? 'divided' : 'same'];
    });
    expect(Object.fromEntries(changed)).toEqual({
      'auth.failuresPerMinute': 'divided',
      'auth.metricsTokenHash': 'same',
      'auth.oidc': 'same',
      baseUrl: 'same',
      'database.batchSize': 'same',
      'database.batchesInFlight': 'divided',
      'database.dataDir': 'same',
      'database.poolSize': 'divided',
      'database.startTimeout': 'same',
      'database.timeout': 'same',
      'database.url': 'same',
      'http.bodyLimit': 'same',
      'http.corsOrigins': 'same',
      'http.host': 'same',
      'http.idleTimeout': 'same',
      'http.keepAliveTimeout': 'same',
      'http.maxConnections': 'divided',
      'http.maxPendingRequests': 'divided',
      'http.port': 'same',
      'http.readinessTolerance': 'same',
      'http.requestTimeout': 'same',
      'http.shutdownDelay': 'same',
      'http.shutdownTimeout': 'same',
      'http.trustedProxyHops': 'same',
      'log.level': 'same',
      'tracing.endpoint': 'same',
      workers: 'same',
      isProduction: 'same',
    });
  });
});

/** Every setting of two levels, such as `http.port`. */
function entriesOf(config: AppConfig): [string, unknown][] {
  return Object.entries(config).flatMap(([key, value]: [string, unknown]) =>
    typeof value === 'object' && value !== null
      ? Object.entries(value).map(([name, it]): [string, unknown] => [`${key}.${name}`, it])
      : [[key, value] as [string, unknown]],
  );
}
