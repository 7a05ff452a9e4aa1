import type { AppConfig } from '../config/config.js';

/**
 * The settings of one worker. What an operator limits for the instance is shared out, so that all workers
 * together keep to it; but everybody gets at least 1.
 *
 * @param worker its number, from 1 to `config.workers`
 */
export function shareOf(config: AppConfig, worker: number): AppConfig {
  const share = (total: number) => {
    const remainder = worker <= total % config.workers ? 1 : 0;
    return Math.max(1, Math.floor(total / config.workers) + remainder);
  };
  const poolSize = share(config.database.poolSize);
  return {
    ...config,
    http: {
      ...config.http,
      maxConnections: share(config.http.maxConnections),
      maxPendingRequests: share(config.http.maxPendingRequests),
    },
    auth: { ...config.auth, failuresPerMinute: share(config.auth.failuresPerMinute) },
    database: {
      ...config.database,
      poolSize,
      // One connection is left for tokens and readiness, which would wait behind the batches otherwise.
      batchesInFlight: Math.max(1, Math.min(share(config.database.batchesInFlight), poolSize - 1)),
    },
  };
}
