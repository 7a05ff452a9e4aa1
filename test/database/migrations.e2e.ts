import { readdirSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { patientConfig } from '../setup/database/patient.js';
import type { DatabaseConfig } from '../../src/config/config.js';
import { databaseOptions } from '../../src/database/database-options.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { runInProcess } from '../setup/service/cli.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';

/** The names of all migrations, in their order: `1763600000000-create-plants.ts` has the class `CreatePlants1763600000000`. */
const MIGRATION_NAMES = readdirSync('src/database/migrations')
  .sort()
  .map((file) => {
    const [time, ...words] = file.replace('.ts', '').split('-');
    return `${words.map((word) => word[0]!.toUpperCase() + word.slice(1)).join('')}${time}`;
  });

// On a server, other tests migrate in the same database, which has one lock; prepareDatabase waits for it.
describe('migrations', () => {
  let database: TestDatabase;
  let config: DatabaseConfig;

  beforeEach(async () => {
    database = await openTestDatabase();
    config = patientConfig({ url: database.url });
  });
  afterEach(() => database.close());

  it('run once, however many replicas start at the same time', async () => {
    await Promise.all(Array.from({ length: 5 }, () => prepareDatabase(config, () => undefined)));
    expect(await database.query('SELECT name FROM migrations ORDER BY id')).toEqual(
      MIGRATION_NAMES.map((name) => ({ name })),
    );
  });

  it('can be reverted, one by one', async () => {
    const tables = () =>
      database.query('SELECT tablename FROM pg_tables WHERE schemaname = current_schema()');
    await prepareDatabase(config, () => undefined);
    const dataSource = await new DataSource(databaseOptions(config)).initialize();
    try {
      for (const _ of MIGRATION_NAMES) await dataSource.undoLastMigration();
    } finally {
      await dataSource.destroy();
    }
    expect(await tables()).toEqual([{ tablename: 'migrations' }]);
  });

  it('make second tables in another schema if the address says so', async () => {
    const prepare = (url: string) => prepareDatabase({ ...config, url }, () => undefined);
    await prepare(config.url);
    await database.query('CREATE SCHEMA other');
    const url = new URL(config.url.replace('@/', '@placeholder/'));
    url.searchParams.set('options', '-c search_path=other');
    await prepare(url.href.replace('placeholder', ''));
    expect(await database.query('SELECT 1 FROM other.plants')).toEqual([]);
  });

  it('are refused where search_path names no schema', async () => {
    await database.set('search_path', 'nowhere');
    await expect(prepareDatabase(config, () => undefined)).rejects.toThrow(
      'cannot be used: no schema has been selected to create in (3F000); search_path names no schema that exists',
    );
  });

  it('are run by the command migrate, which says so', async () => {
    expect(await runInProcess(['migrate'], { DATABASE_URL: database.url })).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'The schema of the database is up to date.\n',
    });
  });

  it('make the schema that the entities describe, with named constraints', async () => {
    await prepareDatabase(config, () => undefined);
    const dataSource = await new DataSource(databaseOptions(config)).initialize();
    try {
      const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
      expect(upQueries.map(({ query }) => query)).toEqual([]);
    } finally {
      await dataSource.destroy();
    }
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
});
