import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AccessTokensService } from '../src/auth/access-tokens.service.js';
import { startService, type TestResponse, type TestService } from './setup/service.js';
import { until } from './setup/until.js';

function expectUnavailable(response: TestResponse) {
  expect(response).toMatchObject({
    status: 503,
    body: { error: 50300, message: expect.any(String) },
  });
  expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
}

describe('while the database is away', () => {
  let service: TestService;

  beforeAll(async () => {
    // On a busy machine, a new connection takes longer than a second.
    service = await startService({ DATABASE_TIMEOUT_MS: '3000' });
  });
  beforeEach(async () => {
    await service.database.query('TRUNCATE plants');
    await service.post('{"id":1,"name":"a"}');
  });
  afterEach(() => service.proxy.restore());
  afterAll(() => service.close());

  it.each(['cut', 'freeze'] as const)(
    'plants are refused with 503, and accepted again afterwards (%s)',
    async (how) => {
      service.proxy[how]();
      expectUnavailable(await service.post('{"id":2,"name":"b"}'));
      const next = [service.post('{"id":2,"name":"b"}'), service.request('/health/ready')];
      for (const response of await Promise.all(next)) expectUnavailable(response);
      expect(await service.request('/health/live')).toMatchObject({ status: 200 });
      service.proxy.restore();
      expect(await service.post('{"id":2,"name":"b"}')).toMatchObject({ status: 200 });
      // The result of a probe is cached for a second.
      await until(async () => (await service.request('/health/ready')).status === 200);
      expect(await service.storedPlants()).toEqual([
        { id: '1', name: 'a', tag: null },
        { id: '2', name: 'b', tag: null },
      ]);
    },
    // It waits for the time-out of the database twice.
    60_000,
  );

  it('a token that cannot be judged gets 503, never 401', async () => {
    const token = await service.app.get(AccessTokensService).create('other');
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

describe('an insert that loses one race after the other, slowly', () => {
  it('is refused with 503 after the time-out, not after the last attempt', async () => {
    const service = await startService({ DATABASE_TIMEOUT_MS: '1000' });
    try {
      await service.database.query('CREATE SEQUENCE attempts');
      await service.database.query(
        `CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
           PERFORM nextval('attempts'), pg_sleep(0.4);
           RAISE EXCEPTION 'no' USING ERRCODE = '40001';
         END $$`,
      );
      await service.database.query(
        'CREATE TRIGGER lose BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION lose()',
      );
      expectUnavailable(await service.post('{"id":1,"name":"a"}'));
      const [row] = await service.database.query<{ attempts: string }>(
        'SELECT last_value::text AS attempts FROM attempts',
      );
      expect(Number(row!.attempts)).toBeLessThan(5);
    } finally {
      await service.close();
    }
  });
});

describe('more work than the service accepts', () => {
  it('is refused at once with 503', async () => {
    const service = await startService({
      MAX_PENDING_REQUESTS: '2',
      // On a busy machine, a new connection takes longer than a second.
      DATABASE_TIMEOUT_MS: '3000',
    });
    try {
      await service.post('{"id":1,"name":"a"}');
      service.proxy.freeze();
      const responses = await Promise.all(
        [1, 2, 3, 4].map((id) => service.post(JSON.stringify({ id, name: 'a' }))),
      );
      const errors = responses.map(({ body }) => (body as { error?: number }).error);
      expect(errors.toSorted()).toEqual([50300, 50300, 50301, 50301]);
      for (const response of responses) {
        expect(response.status).toBe(503);
        expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
      }
      service.proxy.restore();
      expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
    } finally {
      await service.close();
    }
  });
});
