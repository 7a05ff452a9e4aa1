import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import type { Server } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import { afterAll, afterEach, beforeAll } from '@jest/globals';
import { DataSource, type DataSourceOptions } from 'typeorm';
import { createPostgresSocketServer } from '../../src/database/embedded/postgres-socket-server.js';
import { makeDataDir } from './data-dir.js';
import { until } from './until.js';

/** A real Postgres in the process of a unit test, which starts once for a file and is empty before each test. */
export class EmbeddedDatabase {
  private database: PGlite | undefined;
  private dir = '';
  private server: Server | undefined;
  private readonly sources: DataSource[] = [];

  constructor() {
    const resources = new AsyncDisposableStack();
    beforeAll(async () => {
      this.dir = await makeDataDir();
      resources.defer(() => rm(this.dir, { recursive: true }));
      this.database = await PGlite.create(join(this.dir, 'postgres'));
      resources.defer(() => this.database!.close());
      const server = createPostgresSocketServer(this.database);
      this.server = server;
      await once(server.listen(join(this.dir, '.s.PGSQL.5432')), 'listening');
      resources.defer(() => void server.close());
    });
    afterEach(async () => {
      for (const source of this.sources.splice(0)) await source.destroy();
      await this.run('DISCARD ALL');
      await this.run('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    });
    afterAll(() => resources.disposeAsync());
  }

  get url(): string {
    return `postgres://postgres@/postgres?host=${encodeURIComponent(this.dir)}`;
  }

  /** Runs statements. */
  async run(sql: string): Promise<void> {
    await this.database!.exec(sql);
  }

  async rows(sql: string): Promise<unknown[]> {
    return (await this.database!.query(sql)).rows;
  }

  /** Waits until no connection is open. */
  allClosed(): Promise<void> {
    const count = promisify(this.server!.getConnections.bind(this.server!));
    return until(async () => (await count()) === 0);
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
