import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
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

describe('while the database is away', () => {
  let service: TestService;
  let restoreTimers = () => {};
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService({ DATABASE_TIMEOUT_MS: String(DATABASE_TIMEOUT_MS) });
  });
  beforeEach(async () => {
    await service.database.query('TRUNCATE plants');
    await service.post('{"id":1,"name":"a"}');
  });
  afterEach(() => {
    restoreTimers();
    service.proxy.restore();
  });
  afterAll(() => service.close());

  it.each(['cut', 'freeze'] as const)(
    'plants are refused with 503, and accepted again afterwards (%s)',
    async (how) => {
      service.proxy[how]();
      if (how === 'freeze') restoreTimers = endTimersAtOnce(DATABASE_TIMEOUT_MS);
      expectUnavailable(await service.post('{"id":2,"name":"b"}'));
      // The result of a probe is cached for a second.
      await advance(1000);
      const next = [service.post('{"id":2,"name":"b"}'), service.request('/health/ready')];
      for (const response of await Promise.all(next)) expectUnavailable(response);
      expect(await service.request('/health/live')).toMatchObject({ status: 200 });
      restoreTimers();
      service.proxy.restore();
      expect(await service.post('{"id":2,"name":"b"}')).toMatchObject({ status: 200 });
      await advance(1000);
      expect(await service.request('/health/ready')).toMatchObject({ status: 200 });
      expect(await service.storedPlants()).toEqual([
        { id: '1', name: 'a' },
        { id: '2', name: 'b' },
      ]);
    },
  );

  it('a token that cannot be checked gets 503, never 401', async () => {
    const { token } = await service.app.get(AccessTokensService).create('other');
    service.proxy.cut();
    expectUnavailable(
      await service.post('{"id":2,"name":"b"}', { authorization: `Bearer ${token}` }),
    );
    service.proxy.restore();
    expect(
      await service.post('{"id":2,"name":"b"}', { authorization: `Bearer ${token}` }),
    ).toMatchObject({
      status: 200,
    });
  });
});

describe('an insert that fails', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterEach(async () => {
    await service.database.query('DROP FUNCTION IF EXISTS fail CASCADE');
    await service.database.query('TRUNCATE plants');
  });
  afterAll(() => service.close());

  /** @param body of a trigger in front of every INSERT into plants */
  async function beforeInsert(body: string): Promise<void> {
    await service.database.query(
      `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${body} END $$`,
    );
    await service.database.query(
      'CREATE TRIGGER fail BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION fail()',
    );
  }

  it.each([
    ['the disk is full', '53100'],
    ['memory is exhausted', '53200'],
    ['it is read-only', '25006'],
    ['it shuts down', '57P01'],
    ['a lock is not available', '55P03'],
    ['its disk fails', '58030'],
  ])('because %s (%s): 503, then the service recovers', async (_reason, sqlstate) => {
    await beforeInsert(`RAISE EXCEPTION 'no' USING ERRCODE = '${sqlstate}';`);
    expectUnavailable(await service.post('{"id":1,"name":"a"}'));
    await service.database.query('DROP TRIGGER fail ON plants');
    expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
  });

  it.each([
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
  ])('because of %s (%s): the service runs the statement again', async (_reason, sqlstate) => {
    await service.database.query('CREATE SEQUENCE attempts');
    await beforeInsert(
      `IF nextval('attempts') < 3 THEN RAISE EXCEPTION 'no' USING ERRCODE = '${sqlstate}'; END IF;
       RETURN NEW;`,
    );
    expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
    expect(await service.storedPlants()).toHaveLength(1);
    await service.database.query('DROP SEQUENCE attempts');
  });

  it('because of a fault of the service: 500, with a constant text', async () => {
    await service.database.query('ALTER TABLE plants RENAME TO hidden');
    expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({
      status: 500,
      body: { error: 50000, message: expect.not.stringContaining('plants') },
    });
    await service.database.query('ALTER TABLE hidden RENAME TO plants');
  });
});

describe('more work than the service accepts', () => {
  it('is refused at once with 503', async () => {
    const service = await startService({
      MAX_PENDING_REQUESTS: '2',
      DATABASE_TIMEOUT_MS: String(DATABASE_TIMEOUT_MS),
    });
    try {
      await service.post('{"id":1,"name":"a"}');
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
      service.proxy.restore();
      expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
    } finally {
      await service.close();
    }
  });
});
