import { expect, it } from '@jest/globals';
import { MIGRATION_NAMES } from '../../test/setup/database/migrations.js';

it("TypeORM's command line gets the migrations of the database that is set, and prints its results", async () => {
  process.env['DATABASE_URL'] = 'postgres://db/plants';
  const { default: dataSource } = await import('./data-source.js');
  expect(dataSource.options).toMatchObject({
    url: 'postgres://db/plants',
    logger: 'advanced-console',
  });
  expect((dataSource.options.migrations as { name: string }[]).map(({ name }) => name)).toEqual(
    MIGRATION_NAMES,
  );
});
