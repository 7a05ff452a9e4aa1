import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { untilIdle } from '../setup/service/clean-state.js';
import { holdClock } from '../setup/time/clock.js';
import { endTimersAtOnce } from '../setup/time/service-timers.js';
import { startService, type TestResponse, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

function expectUnavailable(response: TestResponse) {
  expect(response).toMatchObject({
    status: 503,
    body: { error: 50300, message: expect.any(String) },
  });
  expect(response.headers.get('retry-after')).toBe('1');
}

/** Not reached unless a test ends the timers, however busy the machine is. */
const DATABASE_TIMEOUT_MS = 59_999;

const PLANT = '{"id":1,"name":"a"}';

let service: TestService;

beforeAll(async () => {
  service = await startService({
    DATABASE_TIMEOUT_MS: String(DATABASE_TIMEOUT_MS),
    DATABASE_POOL_SIZE: '1',
    MAX_PENDING_REQUESTS: '2',
  });
});
beforeEach(() => service.database.query('TRUNCATE plants'));
afterAll(() => service.close());

describe('while the database is away', () => {
  let restoreTimers = () => {};
  const advance = holdClock();

  beforeEach(async () => {
    // Now its token is in the cache, and stays there: no time passes but that of the tests.
    await service.post('{}');
    // The use of the token is stored in the background.
    await untilIdle(service.app);
  });
  afterEach(() => {
    restoreTimers();
    service.proxy.restore();
  });

  it.each(['cut', 'freeze'] as const)(
    'plants are refused with 503, and accepted again afterwards (%s)',
    async (how) => {
      service.proxy[how]();
      if (how === 'freeze') restoreTimers = endTimersAtOnce(DATABASE_TIMEOUT_MS);
      expectUnavailable(await service.post(PLANT));
      // The result of a probe is cached for a second.
      await advance(1000);
      const next = [service.post(PLANT), service.request('/health/ready')];
      for (const response of await Promise.all(next)) expectUnavailable(response);
      expect(await service.request('/health/live')).toMatchObject({ status: 200 });
      restoreTimers();
      service.proxy.restore();
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
      await advance(1000);
      expect(await service.request('/health/ready')).toMatchObject({ status: 200 });
      expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a' }]);
    },
  );

  /** A gauge of the pool. */
  async function gauge(name: string, state?: string): Promise<number | undefined> {
    const { values } = await service.app.get(Registry).getSingleMetric(name)!.get();
    return values.find(({ labels }) => labels['state'] === state)?.value;
  }

  it('a token that cannot be checked gets 503, never 401, and the metrics count what waits', async () => {
    const { token } = await service.app.get(AccessTokensService).create('other');
    const postWithIt = () => service.post(PLANT, { authorization: `Bearer ${token}` });
    await service.post(PLANT);
    service.proxy.freeze();
    const inFlight = service.post(PLANT);
    await until(async () => (await gauge('plant_store_database_connections', 'busy')) === 1);
    const waiting = postWithIt();
    await until(async () => (await gauge('plant_store_database_waiting')) === 1);
    expect(await gauge('plant_store_database_connections', 'idle')).toBe(0);
    service.proxy.cut();
    for (const response of await Promise.all([inFlight, waiting])) expectUnavailable(response);
    service.proxy.restore();
    expect(await postWithIt()).toMatchObject({ status: 200 });
  });

  it('more requests than the service accepts are refused at once with 503', async () => {
    await service.post(PLANT);
    service.proxy.freeze();
    const errors: unknown[] = [];
    const requests = [1, 2, 3, 4].map(async (id) => {
      const response = await service.post(JSON.stringify({ id, name: 'a' }));
      errors.push((response.body as { error?: number }).error);
      return response;
    });
    await until(() => errors.length >= 2);
    expect(errors).toEqual([50301, 50301]);
    service.proxy.cut();
    const responses = await Promise.all(requests);
    expect(errors).toEqual([50301, 50301, 50300, 50300]);
    for (const response of responses) {
      expect(response.status).toBe(503);
      expect(response.headers.get('retry-after')).toBe('1');
    }
  });
});

describe('an insert that fails', () => {
  afterEach(() => service.database.query('DROP FUNCTION IF EXISTS fail CASCADE'));

  /** @param body of a trigger in front of every INSERT into plants */
  async function beforeInsert(body: string): Promise<void> {
    await service.database.query(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`,
    );
    await service.database.query(
      'CREATE TRIGGER fail BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION fail()',
    );
  }

  it('because the disk is full: 503, then the service recovers', async () => {
    await beforeInsert(`RAISE EXCEPTION 'no' USING ERRCODE = '53100';`);
    expectUnavailable(await service.post(PLANT));
    await service.database.query('DROP TRIGGER fail ON plants');
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
  });

  it('because of a serialization failure: the service runs the statement again', async () => {
    await service.database.query('CREATE SEQUENCE attempts');
    await beforeInsert(
      `IF nextval('attempts') < 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END IF;
       RETURN NEW;`,
    );
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    expect(await service.storedPlants()).toHaveLength(1);
  });

  it('because of a fault of the service: 500, with a constant text', async () => {
    await service.database.query('ALTER TABLE plants RENAME TO hidden');
    const response = await service.post(PLANT);
    await service.database.query('ALTER TABLE hidden RENAME TO plants');
    expect(response).toMatchObject({
      status: 500,
      body: { error: 50000, message: expect.not.stringContaining('plants') },
    });
  });
});
