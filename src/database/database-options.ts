import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { DatabaseConfig } from '../config/config.js';
import { CreatePlants1763600000000 } from './migrations/1763600000000-create-plants.js';
import { CreateAccessTokens1763600100000 } from './migrations/1763600100000-create-access-tokens.js';
import type { ClientBase } from 'pg';
import { beginSession, type TimeLimits } from './session.js';

/**
 * The part of a time limit after which the server ends a statement. It reports that before the time is up here, even if this
 * process is busy, so the connection can be used again. One that is given up instead lives on at the server for a while.
 */
export const SERVER_PART = 0.8;

/** The options of the pool of pg. */
export interface PoolOptions {
  readonly onConnect: (client: ClientBase) => Promise<void>;
}

/**
 * The options of every connection. As they are, they suit migrations: one connection, and no limit to a statement.
 *
 * @param limits of the server; by default, there are none
 */
export function databaseOptions(
  config: DatabaseConfig,
  limits: TimeLimits = { statement: 0, lock: 0 },
): PostgresDataSourceOptions {
  return {
    type: 'postgres',
    url: config.url,
    extra: { onConnect: (client) => beginSession(client, limits) } satisfies PoolOptions,
    applicationName: 'plant-store',
    poolSize: 1,
    connectTimeoutMS: config.timeout,
    migrations: [CreatePlants1763600000000, CreateAccessTokens1763600100000],
    migrationsTableName: 'migrations',
    synchronize: false,
    installExtensions: false,
    logging: false,
    // By default, it writes about migrations that fail to standard output, which has results and entries of the log.
    logger: 'debug',
  };
}

/** The options of the service and the commands: every wait has a limit. */
export function timedOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  const limits = { statement: Math.ceil(config.timeout * SERVER_PART), lock: 0 };
  const options = databaseOptions(config, limits);
  return {
    ...options,
    poolSize: config.poolSize,
    // Timed here, too: a frozen server would never report its own timeout.
    extra: { ...(options.extra as PoolOptions), query_timeout: config.timeout, keepAlive: true },
  };
}
