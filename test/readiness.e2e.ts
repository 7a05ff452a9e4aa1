import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { DataSource } from 'typeorm';
import { readConfig } from '../src/config/config.js';
import { prepareDatabase } from '../src/database/prepare-database.js';
import { poolOf } from '../src/database/run-statement.js';
import { startService, type TestService } from './setup/service.js';

describe('/health/ready', () => {
  let service: TestService;
  /** How far the clock of the service is ahead, in milliseconds: a verdict is cached for a second. */
  let ahead = 0;

  beforeAll(async () => {
    const now = Date.now.bind(Date);
    jest.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
    service = await startService();
  });
  afterAll(async () => {
    jest.restoreAllMocks();
    await service.close();
  });

  const ready = () => service.request('/health/ready');

  it('is 200 on a whole database', async () => {
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  it('asks the database once for many probes', async () => {
    await ready();
    service.proxy.cut();
    const answers = await Promise.all(Array.from({ length: 50 }, ready));
    expect(answers.map(({ status }) => status)).toEqual(Array(50).fill(200));
    service.proxy.restore();
  });

  it.each([
    ['the schema is behind', 'DELETE FROM migrations', 'run its migrations'],
    ['there are no plants', 'DROP TABLE plants', 'made: plants.'],
    ['there are no tokens', 'DROP TABLE access_tokens', 'made: access_tokens.'],
    [
      'there is neither',
      'DROP TABLE plants; DROP TABLE access_tokens',
      'made: access_tokens, plants.',
    ],
    ['there is no table of migrations', 'DROP TABLE migrations', 'made: migrations.'],
    ['a column has another name', 'ALTER TABLE plants RENAME tag TO kind', 'made: plants.tag.'],
    [
      'the primary key is gone',
      'ALTER TABLE plants DROP CONSTRAINT plants_pkey',
      'made: the primary key of plants.',
    ],
    ['plants have another name', 'ALTER TABLE plants RENAME TO hidden', 'made: plants.'],
  ])('tells that %s', async (_what, sql, reason) => {
    await service.database.query('DROP TABLE IF EXISTS plants, hidden, access_tokens, migrations');
    const config = { ...readConfig({}).database, url: service.database.url };
    await prepareDatabase(config, () => undefined);
    await service.database.query(sql);
    ahead += 1000;
    const response = await ready();
    expect(response).toMatchObject({ status: 503, body: { error: 50300 } });
    expect(JSON.stringify(response.body)).toContain(reason);
  });
});

describe('/health/ready, for a role that may not do everything', () => {
  let service: TestService;
  const role = `plant_store_test_${process.pid}`;

  beforeEach(async () => {
    service = await startService();
    await service.database.query(`CREATE ROLE ${role}`);
    await service.database.query(
      `DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO ${role}', current_schema()); END $$`,
    );
    await service.database.query(`GRANT SELECT ON migrations, access_tokens TO ${role}`);
  });
  afterEach(async () => {
    await service.database.query('RESET ROLE');
    await service.database.query(`DROP OWNED BY ${role}`);
    await service.database.query(`DROP ROLE ${role}`);
    await service.close();
  });

  it('tells that it may not read the migrations', async () => {
    await service.database.query(`GRANT SELECT, INSERT, UPDATE ON plants TO ${role}`);
    await service.database.query(`REVOKE SELECT ON migrations FROM ${role}`);
    await poolOf(service.app.get(DataSource)).query(`SET ROLE ${role}`);
    const answer = await service.request('/health/ready');
    expect(answer).toMatchObject({ status: 503, body: { error: 50300 } });
    expect(JSON.stringify(answer.body)).toContain('permission denied for table migrations');
  });

  it.each([
    ['SELECT, UPDATE', 503, ': INSERT on plants. '],
    ['INSERT, UPDATE', 503, ': SELECT on plants. '],
    ['SELECT, INSERT', 503, ': UPDATE on plants. '],
    ['SELECT, INSERT (id), UPDATE', 503, ': INSERT on plants. '],
    ['SELECT (id, name, tag), INSERT (id, name, tag), UPDATE (name)', 200, 'ok'],
    ['SELECT, INSERT, UPDATE', 200, 'ok'],
  ])('with %s on plants it is %d and says "%s"', async (granted, status, text) => {
    await service.database.query(`GRANT ${granted} ON plants TO ${role}`);
    // The pool hands out the connection that it got back last.
    await poolOf(service.app.get(DataSource)).query(`SET ROLE ${role}`);
    const answer = await service.request('/health/ready');
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body)).toContain(text);
  });
});
