import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { DatabaseConfig } from '../config/config.js';
import { CreatePlants1763600000000 } from './migrations/1763600000000-create-plants.js';
import { CreateAccessTokens1763600100000 } from './migrations/1763600100000-create-access-tokens.js';
import { primaryClient, serversOf } from './primary-client.js';

/**
 * The options of every connection. As they are, they suit migrations: one connection, and no limit to a statement.
 * DatabaseModule changes both.
 */
export function databaseOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  const servers = serversOf(config.url);
  return {
    type: 'postgres',
    url: config.url,
    extra: servers.length > 1 ? { Client: primaryClient(servers, config.timeout) } : {},
    applicationName: 'plant-store',
    poolSize: 1,
    connectTimeoutMS: config.timeout,
    migrations: [CreatePlants1763600000000, CreateAccessTokens1763600100000],
    migrationsTableName: 'migrations',
    synchronize: false,
    installExtensions: false,
    logging: false,
  };
}
