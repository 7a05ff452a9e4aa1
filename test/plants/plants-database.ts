import { readStoredPlants, type StoredPlant } from '../setup/database/stored-plants.js';
import { afterEach, beforeEach } from '@jest/globals';
import type { Pool } from 'pg';
import type { DataSource } from 'typeorm';
import { readConfig, type AppConfig } from '../../src/config/config.js';
import { poolOf } from '../../src/database/run-statement.js';
import { PlantEntity } from '../../src/plants/plant.entity.js';
import { PlantsRepository } from '../../src/plants/plants.repository.js';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import { PATIENT } from '../setup/database/patient.js';
import { UnitDatabase } from '../setup/database/unit-database.js';
import { settled, untilSettled } from '../setup/time/settled.js';

/**
 * A database with an empty table of plants for each test, and the service's connections to it, which a test can lose: for
 * the unit tests of `src/plants`, where the connections of `UnitDatabase` do not suffice.
 */
export interface PlantsDatabase {
  /** Queries the database on a connection of the test. */
  readonly query: UnitDatabase['query'];
  /** The proxy between the connections and the database. */
  readonly proxy: DatabaseProxy;
  readonly pool: Pool;
  readonly plants: PlantsRepository;
  /** The settings of a service on this database. */
  readonly configure: (env?: Record<string, string>) => AppConfig;
  /** Loses all connections, so that the next statement makes a new one. */
  readonly lose: () => Promise<void>;
  /** Waits until no statement is in flight. */
  readonly idle: () => Promise<void>;
  readonly stored: (order?: string) => Promise<StoredPlant[]>;
}

/** Opens a database for the tests of a `describe` block. */
export function usePlantsDatabase(): PlantsDatabase {
  const database = new UnitDatabase();
  let proxy: DatabaseProxy;
  let dataSource: DataSource;

  const configure = (env: Record<string, string> = {}): AppConfig => {
    const config = readConfig({ DATABASE_URL: proxy.url, ...PATIENT, ...env });
    return { ...config, database: { ...config.database, url: proxy.url } };
  };

  beforeEach(async () => {
    proxy = await startDatabaseProxy(database.url);
    dataSource = await database.openWithSchema([PlantEntity], configure().database);
  });
  afterEach(() => proxy.close());

  const pool = () => poolOf(dataSource);
  return {
    query: database.query,
    get proxy() {
      return proxy;
    },
    get pool() {
      return pool();
    },
    get plants() {
      return new PlantsRepository(dataSource.getRepository(PlantEntity));
    },
    configure,
    async lose() {
      proxy.cut();
      await untilSettled(() => pool().totalCount === 0);
      proxy.restore();
    },
    async idle() {
      do await settled();
      while (pool().totalCount > pool().idleCount || pool().waitingCount > 0);
    },
    stored: (order = 'id') => readStoredPlants(database, `ORDER BY plants.${order}`),
  };
}
