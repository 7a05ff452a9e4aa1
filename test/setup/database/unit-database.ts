import { DataSource } from 'typeorm';
import { readConfig } from '../../../src/config/config.js';
import { databaseOptions } from '../../../src/database/database-options.js';
import { prepareDatabase } from '../../../src/database/prepare-database.js';
import { openTestDatabase } from './database.js';

/** A database with the schema of the service, for a unit test that needs no service. */
export interface UnitDatabase {
  /** One connection, so that statements run in the order in which they were sent. */
  readonly dataSource: DataSource;
  close(): Promise<void>;
}

export async function openUnitDatabase(
  entities: readonly (new () => object)[],
): Promise<UnitDatabase> {
  const empty = await openTestDatabase();
  // Ends only statements that hang: a busy machine needs several times as long as an idle one.
  const { database } = readConfig({ DATABASE_TIMEOUT_MS: '60000', DATABASE_URL: empty.url });
  const config = { ...database, url: empty.url };
  await prepareDatabase(config, () => undefined);
  const options = databaseOptions(config);
  const dataSource = await new DataSource({
    ...options,
    extra: { ...options.extra, query_timeout: config.timeout },
    entities: [...entities],
  }).initialize();
  return {
    dataSource,
    async close() {
      await dataSource.destroy();
      await empty.close();
    },
  };
}
