import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import type { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { readConfig, type AppConfig } from '../../src/config/config.js';
import { migrationDatabaseOptions } from '../../src/database/database-options.js';
import { createPostgresSocketServer } from '../../src/database/embedded/postgres-socket-server.js';
import { poolOf } from '../../src/database/run-statement.js';
import { PlantEntity } from '../../src/plants/plant.entity.js';
import { PlantsRepository } from '../../src/plants/plants.repository.js';
import { makeDataDir } from './data-dir.js';
import { startDatabaseProxy, type DatabaseProxy } from './database-proxy.js';
import { settled } from './settled.js';

/** A Postgres with an empty table of plants for each test, and the service's connections to it. */
export interface PlantsDatabase {
  /** The database itself, without a connection. */
  readonly postgres: PGlite;
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
  readonly stored: (order?: string) => Promise<StoredRow[]>;
}

interface StoredRow {
  readonly id: string;
  readonly name: string;
  readonly tag: string | null;
}

/** Opens a database for the tests of a `describe` block. */
export function usePlantsDatabase(): PlantsDatabase {
  let dir: string;
  let postgres: PGlite;
  let server: Server;
  let proxy: DatabaseProxy;
  let dataSource: DataSource;

  const configure = (env: Record<string, string> = {}): AppConfig => {
    const config = readConfig({ DATABASE_URL: proxy.url, ...env });
    return { ...config, database: { ...config.database, url: proxy.url } };
  };

  beforeAll(async () => {
    dir = await makeDataDir();
    postgres = await PGlite.create(join(dir, 'postgres'));
    server = createPostgresSocketServer(postgres);
    await once(server.listen(join(dir, '.s.PGSQL.5432')), 'listening');
  });
  beforeEach(async () => {
    // All connections share one session, and with it the prepared statements of the last test.
    await postgres.exec('DEALLOCATE ALL; DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    proxy = await startDatabaseProxy(
      `postgres://postgres@/postgres?host=${encodeURIComponent(dir)}`,
    );
    const { database } = configure();
    dataSource = await new DataSource({
      ...migrationDatabaseOptions(database),
      poolSize: database.poolSize,
      extra: { query_timeout: database.timeout },
      entities: [PlantEntity],
      migrationsRun: true,
    }).initialize();
  });
  afterEach(async () => {
    await dataSource.destroy();
    await proxy.close();
  });
  afterAll(async () => {
    server.close();
    await postgres.close();
    await rm(dir, { recursive: true });
  });

  const pool = () => poolOf(dataSource);
  return {
    get postgres() {
      return postgres;
    },
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
      while (pool().totalCount > 0) await settled();
      proxy.restore();
    },
    async idle() {
      do await settled();
      while (pool().totalCount > pool().idleCount || pool().waitingCount > 0);
    },
    async stored(order = 'id') {
      const { rows } = await postgres.query<StoredRow>(
        `SELECT id::text AS id, name, tag FROM plants ORDER BY plants.${order}`,
      );
      return rows;
    },
  };
}
