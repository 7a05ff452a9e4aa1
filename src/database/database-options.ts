// The options of every connection.

import type { ClientBase } from 'pg';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { DatabaseConfig } from '../config/config.js';
import { CreatePlants1763600000000 } from './migrations/1763600000000-create-plants.js';
import { CreateAccessTokens1763600100000 } from './migrations/1763600100000-create-access-tokens.js';
import { beginSession } from './session.js';

/**
 * @param statementTimeout the limit of a statement, in milliseconds. Behind a pooler, the server still has that of `config.timeout`.
 */
export function databaseOptions(
  config: DatabaseConfig,
  statementTimeout = config.timeout,
): PostgresDataSourceOptions {
  return {
    type: 'postgres',
    url: config.url,
    applicationName: 'plant-store',
    poolSize: config.poolSize,
    connectTimeoutMS: config.timeout,
    extra: {
      onConnect: (client: ClientBase) => beginSession(client, config.timeout, statementTimeout),
      // A frozen server would never report its own timeout.
      query_timeout: statementTimeout,
      keepAlive: true,
    },
    migrations: [CreatePlants1763600000000, CreateAccessTokens1763600100000],
    migrationsTableName: 'migrations',
    synchronize: false,
    installExtensions: false,
    logging: false,
    // By default, it writes about migrations that fail to standard output, which has results and entries of the log.
    logger: 'debug',
  };
}
