import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { patientConfig } from '../setup/database/patient.js';
import type { DatabaseConfig } from '../../src/config/config.js';
import { databaseOptions } from '../../src/database/database-options.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';

// On a server, other tests migrate in the same database, which has one lock; prepareDatabase waits for it.
describe('migrations', () => {
  let database: TestDatabase;
  let config: DatabaseConfig;

  beforeEach(async () => {
    database = await openTestDatabase();
    config = patientConfig({ url: database.url });
  });
  afterEach(() => database.close());

  const prepare = (url = config.url) => prepareDatabase({ ...config, url }, () => undefined);

  it('run once, however many replicas start at the same time, and make the schema of the entities, with named constraints', async () => {
    await Promise.all(Array.from({ length: 5 }, () => prepare()));
    const dataSource = await new DataSource(databaseOptions(config)).initialize();
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    const names = dataSource.migrations.map(({ constructor: { name } }) => ({ name }));
    await dataSource.destroy();
    expect(upQueries.map(({ query }) => query)).toEqual([]);
    expect(await database.query('SELECT name FROM migrations ORDER BY id')).toEqual(names);
    const constraints = await database.query<{ name: string }>(
      `SELECT conname AS name FROM pg_constraint
       WHERE contype IN ('p', 'u', 'f', 'c') AND connamespace = current_schema()::regnamespace
         AND conrelid <> 'migrations'::regclass
       ORDER BY 1`,
    );
    expect(constraints.map(({ name }) => name)).toEqual([
      'access_tokens_hash_key',
      'access_tokens_pkey',
      'plants_pkey',
    ]);
  });

  it('can be reverted, one by one', async () => {
    await prepare();
    const dataSource = await new DataSource(databaseOptions(config)).initialize();
    for (const _ of dataSource.migrations) await dataSource.undoLastMigration();
    await dataSource.destroy();
    expect(
      await database.query('SELECT tablename FROM pg_tables WHERE schemaname = current_schema()'),
    ).toEqual([{ tablename: 'migrations' }]);
  });

  it('make second tables in another schema if the address says so', async () => {
    await prepare();
    await database.query('CREATE SCHEMA other');
    const url = new URL(config.url.replace('@/', '@placeholder/'));
    url.searchParams.set('options', '-c search_path=other');
    await prepare(url.href.replace('placeholder', ''));
    expect(await database.query('SELECT 1 FROM other.plants')).toEqual([]);
  });

  it('are refused where search_path names no schema', async () => {
    await database.set('search_path', 'nowhere');
    await expect(prepare()).rejects.toThrow(
      'cannot be used: no schema has been selected to create in (3F000); search_path names no schema that exists',
    );
  });
});
