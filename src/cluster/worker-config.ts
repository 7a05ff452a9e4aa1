import type { AppConfig } from '../config/config.js';

/**
 * The config of one worker. A limit of the service is divided, so that all workers together keep to it; but each
 * worker gets at least 1.
 *
 * @param worker its number, from 1 to `config.workers`
 */
export function workerConfig(config: AppConfig, worker: number): AppConfig {
  const divide = (total: number) => {
    const remainder = worker <= total % config.workers ? 1 : 0;
    return Math.max(1, Math.floor(total / config.workers) + remainder);
  };
  const poolSize = divide(config.database.poolSize);
  return {
    ...config,
    http: {
      ...config.http,
      maxConnections: divide(config.http.maxConnections),
      maxPendingRequests: divide(config.http.maxPendingRequests),
    },
    auth: { ...config.auth, failuresPerMinute: divide(config.auth.failuresPerMinute) },
    database: {
      ...config.database,
      poolSize,
      // One connection is left for tokens and readiness, which would wait behind the batches otherwise.
      batchesInFlight: Math.max(1, Math.min(divide(config.database.batchesInFlight), poolSize - 1)),
    },
  };
}
