import { afterEach, beforeEach } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { openTestDatabase, type TestDatabase } from './database.js';
import { until } from '../time/until.js';

/** A database that is empty before each test of a file. */
export class FreshDatabase {
  private database: TestDatabase | undefined;
  private readonly sources: DataSource[] = [];

  constructor() {
    beforeEach(async () => {
      this.database = await openTestDatabase();
    });
    afterEach(async () => {
      for (const source of this.sources.splice(0)) await source.destroy();
      await this.database!.close();
    });
  }

  get url(): string {
    return this.database!.url;
  }

  /** Runs statements. */
  async run(sql: string): Promise<void> {
    await this.database!.query(sql);
  }

  rows(sql: string): Promise<unknown[]> {
    return this.database!.query(sql);
  }

  /** Changes a setting of all sessions that begin from now on. */
  set(name: string, value: string): Promise<void> {
    return this.database!.set(name, value);
  }

  /** Waits until no connection is open but that of this object. */
  allClosed(): Promise<void> {
    return until(async () => {
      const others = await this.rows(
        'SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
      );
      return others.length === 0;
    });
  }

  /** Opens a pool of one connection until the end of the test. */
  async open(
    options: Pick<DataSourceOptions, 'entities' | 'migrations'> = {},
  ): Promise<DataSource> {
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
}
