import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { poolOf } from '../../src/database/run-statement.js';
import { PLANT_FIELDS } from '../../src/plants/dto/plant.js';
import { holdClock } from '../setup/time/clock.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

let service: TestService;

afterEach(() => service.proxy.restore());

const ready = async () => (await service.request('/health/ready')).status;

describe('/health/ready', () => {
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService({ DATABASE_POOL_SIZE: '2' });
  });
  afterAll(() => service.close());

  it('is 200 on a complete database, and stored by no cache, like /health/live', async () => {
    for (const path of ['/health/live', '/health/ready']) {
      const response = await service.request(path);
      expect(response).toMatchObject({ status: 200, body: { status: 'ok' } });
      expect(response.headers.get('cache-control')).toBe('no-store');
    }
  });

  it('follows the database after a second, and not before, and queries it once for many probes', async () => {
    const probes = () => Promise.all(Array.from({ length: 20 }, ready));
    await advance(1000);
    await ready();
    service.proxy.cut();
    await advance(999);
    expect(await probes()).toEqual(Array(20).fill(200));
    await advance(1);
    expect(await ready()).toBe(503);
    const { connections } = service.proxy;
    expect(await probes()).toEqual(Array(20).fill(503));
    expect(service.proxy.connections).toBe(connections);
    service.proxy.restore();
    await advance(1000);
    expect(await ready()).toBe(200);
  });

  it('needs no more connections to the database than DATABASE_POOL_SIZE allows', async () => {
    const pool = poolOf(service.app.get(DataSource));
    await Promise.all(Array.from({ length: 20 }, () => pool.query('SELECT 1')));
    expect(pool.totalCount).toBe(2);
  });
});

describe('/health/ready, with a tolerance of a minute', () => {
  /** Not reached unless the test ends the timers, however busy the machine is. */
  const TIMEOUT_MS = 59_999;
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

  async function onEachConnection(sql: string): Promise<void> {
    const pool = poolOf(service.app.get(DataSource));
    // A connection that the fault before held up may be opened only now.
    await until(() => pool.idleCount === pool.totalCount);
    const clients = await Promise.all(
      Array.from({ length: pool.totalCount }, () => pool.connect()),
    );
    for (const client of clients) {
      await client.query(sql);
      client.release();
    }
  }

  it.each<[string, () => unknown, () => unknown]>([
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
    [
      'is read-only',
      () => onEachConnection('SET default_transaction_read_only = on'),
      () => onEachConnection('SET default_transaction_read_only = off'),
    ],
  ])(
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
  });

  /** Says so at once, because no failover ends it, and without names, because anybody may ask. */
  async function expectProblem(kind: string): Promise<void> {
    const message = `${kind}: see the log of the service.`;
    expect(await service.request('/health/ready')).toMatchObject({
      status: 503,
      body: { error: 50300, message },
    });
  }

  it.each([
    [
      'The schema of the database is behind this version of the service',
      `UPDATE migrations SET name = '?' || name`,
      'UPDATE migrations SET name = substr(name, 2)',
    ],
    [
      'The database lacks a table',
      'ALTER TABLE plants RENAME TO hidden',
      'ALTER TABLE hidden RENAME TO plants',
    ],
  ])('is 503 at once and says "%s" after %s', async (kind, sql, undo) => {
    await service.database.query(sql);
    await expectProblem(kind);
    await service.database.query(undo);
  });

  describe('for a role', () => {
    const role = `plant_store_test_${process.pid}`;
    const columns = PLANT_FIELDS.join();

    beforeEach(async () => {
      const query = (sql: string) => service.database.query(sql);
      await query(`CREATE ROLE ${role}`);
      await query(
        `DO $$ BEGIN EXECUTE format('GRANT USAGE ON SCHEMA %I TO ${role}', current_schema()); END $$`,
      );
      await query(`GRANT SELECT ON migrations, access_tokens TO ${role}`);
      await query(
        `GRANT SELECT (${columns}), INSERT (${columns}), UPDATE (name) ON plants TO ${role}`,
      );
    });
    afterEach(async () => {
      await onEachConnection('RESET ROLE');
      await service.database.query(`DROP OWNED BY ${role}`);
      await service.database.query(`DROP ROLE ${role}`);
    });

    it('that has its privileges on the columns that it needs, it is 200', async () => {
      await onEachConnection(`SET ROLE ${role}`);
      expect(await ready()).toBe(200);
    });

    it.each([
      ['SELECT ON plants', 'The role of the service lacks a privilege'],
      ['INSERT ON plants', 'The role of the service lacks a privilege'],
      ['UPDATE ON plants', 'The role of the service lacks a privilege'],
      ['SELECT ON access_tokens', 'The role of the service lacks a privilege'],
      ['SELECT ON migrations', 'The database refuses the service'],
    ])('without %s, it is 503 at once and says "%s"', async (privilege, kind) => {
      await service.database.query(`REVOKE ${privilege} FROM ${role}`);
      await onEachConnection(`SET ROLE ${role}`);
      await expectProblem(kind);
    });
  });
});
