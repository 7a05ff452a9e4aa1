import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { DataSource } from 'typeorm';
import { readConfig } from '../../src/config/config.js';
import { migrationDatabaseOptions } from '../../src/database/database-options.js';
import { createPostgresSocketServer } from '../../src/database/embedded/postgres-socket-server.js';
import { migrate } from '../../src/database/prepare-database.js';
import { makeDataDir } from './data-dir.js';

/** A Postgres in this thread, with the schema of the service, for a unit test that needs no service. */
export interface UnitDatabase {
  /** One connection, so that statements run in the order in which they were sent. */
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

export async function openUnitDatabase(
  entities: readonly (new () => object)[],
): Promise<UnitDatabase> {
  const dir = await makeDataDir();
  const postgres = await PGlite.create(join(dir, 'postgres'));
  const server = createPostgresSocketServer(postgres);
  await once(server.listen(join(dir, '.s.PGSQL.5432')), 'listening');
  const { database } = readConfig({
    // Ends only statements that hang: a busy machine needs several times as long as an idle one.
    DATABASE_TIMEOUT_MS: '60000',
    DATABASE_URL: `postgres://postgres@/postgres?host=${encodeURIComponent(dir)}`,
  });
  const config = { ...database, url: database.url! };
  await migrate(config, () => undefined);
  const options = migrationDatabaseOptions(config);
  const dataSource = await new DataSource({
    ...options,
    extra: { ...options.extra, query_timeout: config.timeout },
    entities: [...entities],
  }).initialize();
  return {
    dataSource,
    async close() {
      await dataSource.destroy();
      server.close();
      await postgres.close();
      await rm(dir, { recursive: true });
    },
  };
}
