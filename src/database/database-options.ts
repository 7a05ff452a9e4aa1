import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import type { DatabaseConfig } from '../config/config.js';
import { CreatePlants1763600000000 } from './migrations/1763600000000-create-plants.js';
import { CreateAccessTokens1763600100000 } from './migrations/1763600100000-create-access-tokens.js';

/** For requests: a bounded pool, and a limit to every wait. */
export function requestDatabaseOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  return {
    ...migrationDatabaseOptions(config),
    poolSize: config.poolSize,
    // Timed by the client, not by a `statement_timeout` sent at connect: PgBouncer refuses unknown
    // startup parameters, and a frozen server would never report its own time-out.
    extra: { query_timeout: config.timeout, keepAlive: true },
  };
}

/** For migrations: one connection, and no limit to a statement. */
export function migrationDatabaseOptions(config: DatabaseConfig): PostgresDataSourceOptions {
  return {
    type: 'postgres',
    url: config.url,
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
