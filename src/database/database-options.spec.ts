import { describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { MIGRATION_NAMES } from '../../test/database/migrations.js';
import { startScriptedPostgres, type Script } from '../../test/setup/database/scripted-postgres.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { databaseOptions, timedOptions } from './database-options.js';

const optionsFor = (url: string) => databaseOptions(patientConfig({ url, timeout: 700 }));

describe('the options for migrations', () => {
  const resources = useResources();

  async function start(script?: Script) {
    const server = await startScriptedPostgres(script);
    resources.defer(() => server.close());
    return server;
  }

  it('open one connection, which tells the server the name of the service', async () => {
    const server = await start();
    const dataSource = await new DataSource(optionsFor(server.url)).initialize();
    resources.defer(() => dataSource.destroy());
    await Promise.all([dataSource.query('SELECT 1'), dataSource.query('SELECT 2')]);
    expect(server.connections).toMatchObject([{ parameters: { application_name: 'plant-store' } }]);
  });

  it('change nothing in the database but what the migrations do, and log no statements', () => {
    expect(optionsFor('postgres://a/plants')).toMatchObject({
      type: 'postgres',
      connectTimeoutMS: 700,
      migrationsTableName: 'migrations',
      synchronize: false,
      installExtensions: false,
      logging: false,
      // This logger writes nothing to standard output.
      logger: 'debug',
    });
  });

  it('have the migrations that test/database/migrations.ts lists', () => {
    const { migrations } = optionsFor('postgres://a/plants');
    expect((migrations as { name: string }[]).map(({ name }) => name)).toEqual(MIGRATION_NAMES);
  });
});

it('the options of the service keep a connection that is idle from being dropped on its way', () => {
  const options = timedOptions(patientConfig({ url: 'postgres://a/plants' }));
  expect(options.extra).toMatchObject({ keepAlive: true });
});

describe('the time limits of the server', () => {
  const database = new UnitDatabase();

  const limitsOf = async (options: typeof databaseOptions | typeof timedOptions) => {
    const dataSource = await database.open(
      options(patientConfig({ url: database.url, timeout: 701 })),
    );
    return dataSource.query<object[]>(
      "SELECT current_setting('statement_timeout') AS statement, current_setting('lock_timeout') AS lock",
    );
  };

  it('do not apply to migrations, whatever the database sets', async () => {
    await database.set('statement_timeout', '1234');
    await database.set('lock_timeout', '1234');
    expect(await limitsOf(databaseOptions)).toEqual([{ statement: '0', lock: '0' }]);
  });

  it('end a statement of the service after four fifths of the time that the service waits', async () => {
    expect(await limitsOf(timedOptions)).toEqual([{ statement: '561ms', lock: '0' }]);
  });
});
