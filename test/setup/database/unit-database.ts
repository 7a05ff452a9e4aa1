import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import { patientConfig } from './patient.js';
import { databaseOptions } from '../../../src/database/database-options.js';
import { openTestDatabase, type TestDatabase } from './database.js';

export type { DataSource };

/**
 * A database for unit tests, and pools of connections to it, until its tests end: one for each test, or one for all tests
 * of a `describe` block. Tests with a service have the database of the service.
 */
export class UnitDatabase {
  private database: TestDatabase | undefined;
  private readonly sources: DataSource[] = [];

  /** @param lifetime the tests of a block that share a database need less time, and empty their tables themselves */
  constructor(lifetime: 'test' | 'block' = 'test') {
    const [before, after] = lifetime === 'test' ? [beforeEach, afterEach] : [beforeAll, afterAll];
    before(async () => {
      this.database = await openTestDatabase();
    });
    after(async () => {
      for (const source of this.sources.splice(0)) await source.destroy();
      await this.database!.close();
    });
  }

  get url(): string {
    return this.database!.url;
  }

  /** Runs statements on a connection of the test. */
  query: TestDatabase['query'] = (sql, parameters) => this.database!.query(sql, parameters);

  /** The sessions of the service: those of a test have another name. */
  serviceSessions(): Promise<object[]> {
    return this.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'plant-store'",
    );
  }

  /** Changes a setting of all sessions that begin from now on. */
  set(name: string, value: string): Promise<void> {
    return this.database!.set(name, value);
  }

  /** Opens a pool, by default of one connection. */
  async open(options: Partial<PostgresDataSourceOptions> = {}): Promise<DataSource> {
    const source = await new DataSource({
      type: 'postgres',
      url: this.url,
      poolSize: 1,
      installExtensions: false,
      extra: { query_timeout: 5000 },
      ...options,
    }).initialize();
    this.sources.push(source);
    return source;
  }

  /**
   * Makes the schema of the service, and opens a pool.
   *
   * @param config by default with one connection, so that statements run in the order in which they were sent
   */
  openWithSchema(
    entities: NonNullable<PostgresDataSourceOptions['entities']>,
    config = patientConfig({ url: this.url, poolSize: 1 }),
  ): Promise<DataSource> {
    const options = databaseOptions(config);
    return this.open({
      ...options,
      poolSize: config.poolSize,
      extra: { ...options.extra, query_timeout: config.timeout },
      entities,
      migrationsRun: true,
    });
  }
}
