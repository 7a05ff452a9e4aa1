import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { DatabaseConfig } from '../config/config.js';
import { CreatePlants1763600000000 } from './migrations/1763600000000-create-plants.js';
import { CreateAccessTokens1763600100000 } from './migrations/1763600100000-create-access-tokens.js';

const schemaOptions: PostgresDataSourceOptions = {
  type: 'postgres',
  applicationName: 'plant-store',
  migrations: [CreatePlants1763600000000, CreateAccessTokens1763600100000],
  migrationsTableName: 'migrations',
  synchronize: false,
  installExtensions: false,
  logging: false,
};

/** How requests reach the database: a bounded pool, and an end to every wait. */
export function requestDatabaseOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  return {
    ...schemaOptions,
    url: config.url,
    poolSize: config.poolSize,
    connectTimeoutMS: config.timeout,
    // Timed by the client, not by a `statement_timeout` sent at connect: PgBouncer refuses unknown
    // startup parameters, and a frozen server would never report its own time-out.
    extra: { query_timeout: config.timeout, keepAlive: true },
  };
}

/** How migrations reach the database: one connection, and no time-out on a statement. */
export function migrationDatabaseOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  return {
    ...schemaOptions,
    url: config.url,
    poolSize: 1,
    connectTimeoutMS: config.timeout,
  };
}
