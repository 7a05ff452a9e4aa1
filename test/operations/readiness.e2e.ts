import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { patientConfig } from '../setup/database/patient.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { poolOf } from '../../src/database/run-statement.js';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { holdClock } from '../setup/time/clock.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

describe('/health/ready', () => {
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  const ready = () => service.request('/health/ready');

  it('is 200 on a complete database', async () => {
    expect(await ready()).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  it('is stored by no cache, like /health/live', async () => {
    for (const path of ['/health/live', '/health/ready']) {
      const { headers } = await service.request(path);
      expect(headers.get('cache-control')).toBe('no-store');
    }
  });

  it('queries the database once for many probes of one second', async () => {
    await ready();
    service.proxy.cut();
    const responses = await Promise.all(Array.from({ length: 50 }, ready));
    expect(responses.map(({ status }) => status)).toEqual(Array(50).fill(200));
    service.proxy.restore();
  });

  it('follows the database after a second, and not before', async () => {
    await advance(1000);
    await ready();
    service.proxy.cut();
    await advance(999);
    expect((await ready()).status).toBe(200);
    await advance(1);
    expect((await ready()).status).toBe(503);
    // In an outage, too, only one of many probes disturbs the database.
    const { connections } = service.proxy;
    for (let probe = 0; probe < 5; probe++) expect((await ready()).status).toBe(503);
    expect(service.proxy.connections).toBe(connections);
    service.proxy.restore();
  });

  it.each([
    [
      'the schema is behind',
      'DELETE FROM migrations',
      'The schema of the database is behind this version of the service',
    ],
    ['a table is missing', 'DROP TABLE plants', 'The database lacks a table'],
    ['a table is missing', 'DROP TABLE access_tokens', 'The database lacks a table'],
    ['a table is missing', 'DROP TABLE migrations', 'The database lacks a table'],
  ])('says that %s, without its name, after %s', async (_problem, sql, kind) => {
    await service.database.query('DROP TABLE IF EXISTS plants, hidden, access_tokens, migrations');
    const config = patientConfig({ url: service.database.url });
    await prepareDatabase(config, () => undefined);
    await service.database.query(sql);
    await advance(1000);
    const response = await ready();
    const message = `${kind}: see the log of the service.`;
    expect(response).toMatchObject({ status: 503, body: { error: 50300, message } });
  });
});

it('DATABASE_POOL_SIZE limits the connections to the database', async () => {
  const service = await startService({ DATABASE_POOL_SIZE: '2' });
  const pool = poolOf(service.app.get(DataSource));
  await Promise.all(Array.from({ length: 20 }, () => pool.query('SELECT 1')));
  expect(pool.totalCount).toBe(2);
  await service.close();
});

describe('/health/ready, when the date is set back by an hour', () => {
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  const ready = async () => (await service.request('/health/ready')).status;

  it('still follows the database', async () => {
    expect(await ready()).toBe(200);
    await advance.changeDate(-3_600_000);
    service.proxy.cut();
    await advance(1000);
    expect(await ready()).toBe(503);
    service.proxy.restore();
    await advance(1000);
    expect(await ready()).toBe(200);
  });
});

describe('/health/ready, with a tolerance of a minute', () => {
  /** Not reached unless the test ends the timers, however busy the machine is. */
  const TIMEOUT_MS = 59_999;
  let service: TestService;
  let restoreTimers = () => {};
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService({
      READINESS_TOLERANCE_MS: '60000',
      DATABASE_TIMEOUT_MS: String(TIMEOUT_MS),
    });
  });
  afterEach(() => restoreTimers());
  afterAll(() => service.close());
  beforeEach(async () => {
    await advance(1000);
    expect(await ready()).toBe(200);
    await advance(1000);
  });

  const ready = async () => (await service.request('/health/ready')).status;

  const setReadOnly = async (value: 'on' | 'off') => {
    const pool = poolOf(service.app.get(DataSource));
    // A connection that the fault before held up may be opened only now.
    await until(() => pool.idleCount === pool.totalCount);
    const clients = await Promise.all(
      Array.from({ length: pool.totalCount }, () => pool.connect()),
    );
    for (const client of clients) {
      await client.query(`SET default_transaction_read_only = ${value}`);
      client.release();
    }
  };
  const faults: [string, () => unknown, () => unknown][] = [
    ['cannot be reached', () => service.proxy.cut(), () => service.proxy.restore()],
    [
      'does not respond',
      () => {
        service.proxy.freeze();
        restoreTimers = endTimersAtOnce(TIMEOUT_MS);
      },
      () => {
        restoreTimers();
        service.proxy.restore();
      },
    ],
    ['is read-only', () => setReadOnly('on'), () => setReadOnly('off')],
  ];

  it.each(faults)(
    'is 200 for a minute from the first check that finds that the database %s, then 503',
    async (_fault, begin, end) => {
      // A long time before the fault without any check does not count.
      await advance(600_000);
      await begin();
      expect(await ready()).toBe(200);
      await advance(50_000);
      expect(await ready()).toBe(200);
      await advance(10_000);
      const response = await service.request('/health/ready');
      expect(response).toMatchObject({ status: 503, body: { error: 50300 } });
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      await end();
    },
  );

  it('begins anew with each outage', async () => {
    for (let outage = 0; outage < 3; outage++) {
      service.proxy.cut();
      expect(await ready()).toBe(200);
      await advance(40_000);
      expect(await ready()).toBe(200);
      service.proxy.restore();
      await advance(1000);
      expect(await ready()).toBe(200);
      await advance(1000);
    }
  });

  it('is 503 at once for what no failover ends', async () => {
    await service.database.query('ALTER TABLE plants RENAME TO hidden');
    expect(await ready()).toBe(503);
    await service.database.query('ALTER TABLE hidden RENAME TO plants');
  });

  it('begins anew when the database responds, whatever it says', async () => {
    service.proxy.cut();
    expect(await ready()).toBe(200);
    service.proxy.restore();
    await service.database.query('ALTER TABLE plants RENAME TO hidden');
    await advance(40_000);
    expect(await ready()).toBe(503);
    await service.database.query('ALTER TABLE hidden RENAME TO plants');
    service.proxy.cut();
    await advance(40_000);
    expect(await ready()).toBe(200);
    service.proxy.restore();
  });
});

describe('/health/ready, for a role with limited privileges', () => {
  let service: TestService;
  const role = `plant_store_test_${process.pid}`;
  const COLUMNS = PLANT_FIELDS.join();

  beforeEach(async () => {
    service = await startService({ READINESS_TOLERANCE_MS: '60000' });
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

  it('says that the role may not read the migrations, whatever the tolerance', async () => {
    await service.database.query(`GRANT SELECT, INSERT, UPDATE ON plants TO ${role}`);
    await service.database.query(`REVOKE SELECT ON migrations FROM ${role}`);
    await poolOf(service.app.get(DataSource)).query(`SET ROLE ${role}`);
    const response = await service.request('/health/ready');
    const message = 'The database refuses the service: see the log of the service.';
    expect(response).toMatchObject({ status: 503, body: { error: 50300, message } });
  });

  it.each([
    ['SELECT, UPDATE', 503, 'lacks a privilege: see'],
    ['INSERT, UPDATE', 503, 'lacks a privilege: see'],
    ['SELECT, INSERT', 503, 'lacks a privilege: see'],
    [`SELECT (${COLUMNS}), INSERT (${COLUMNS}), UPDATE (name)`, 200, 'ok'],
    ['SELECT, INSERT, UPDATE', 200, 'ok'],
  ])('with %s on plants, it is %d and says "%s"', async (granted, status, text) => {
    await service.database.query(`GRANT ${granted} ON plants TO ${role}`);
    // The pool uses the connection that was released last, which is this one.
    await poolOf(service.app.get(DataSource)).query(`SET ROLE ${role}`);
    const response = await service.request('/health/ready');
    expect(response.status).toBe(status);
    expect(JSON.stringify(response.body)).toContain(text);
  });
});
