import type { AppConfig } from '../config/config.js';

/**
 * The config of one worker. The limits that hold for the whole service are divided between the workers; each worker
 * gets at least 1.
 *
 * @param worker its number, from 1 to `config.workers`
 */
export function workerConfig(config: AppConfig, worker: number): AppConfig {
  const divide = (total: number) => {
    const remainder = worker <= total % config.workers ? 1 : 0;
    return Math.max(1, Math.floor(total / config.workers) + remainder);
  };
  const { http, auth, database } = config;
  const poolSize = divide(database.poolSize);
  return {
    ...config,
    http: {
      ...http,
      maxConnections: divide(http.maxConnections),
      maxPendingRequests: divide(http.maxPendingRequests),
    },
    auth: { ...auth, failuresPerMinute: divide(auth.failuresPerMinute) },
    database: {
      ...database,
      poolSize,
      // If the worker has two or more connections, one is reserved for tokens and readiness, which would otherwise wait
      // behind the batches.
      batchesInFlight:
        database.batchesInFlight &&
        Math.max(1, Math.min(divide(database.batchesInFlight), poolSize - 1)),
    },
  };
}
