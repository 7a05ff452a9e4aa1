import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { isRequired, TEXT_FIELDS } from '../../src/plants/dto/plant.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

describe('creating is idempotent', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(() => service.close());

  it.each([
    ['with a tag', '{"id":1,"name":"a","tag":"t"}', { name: 'a', tag: 't' }],
    ['without a tag', '{"id":1,"name":"a"}', { name: 'a' }],
    ['with an empty tag', '{"id":1,"name":"a","tag":""}', { name: 'a', tag: '' }],
  ])('the same plant again, %s, is 200 and stores nothing new', async (_kind, body, plant) => {
    expect(await service.post(body)).toMatchObject({ status: 200, body: plant });
    const before = await service.database.query('SELECT xmin::text, ctid::text, * FROM plants');
    expect(await service.post(body)).toMatchObject({ status: 200, body: plant });
    expect(await service.database.query('SELECT xmin::text, ctid::text, * FROM plants')).toEqual(
      before,
    );
  });

  it('the same plant, written differently, is 200 and stores nothing new', async () => {
    await service.post('{"id":100,"name":"a"}');
    expect(await service.post('{"id":1.00e2,"name":"\\u0061"}')).toMatchObject({ status: 200 });
    expect(await service.storedPlants()).toHaveLength(1);
  });

  const PLANT = '{"id":1,"name":"a","tag":"t"}';

  async function expectIdTaken(body: string): Promise<void> {
    expect(await service.post(body)).toMatchObject({
      status: 400,
      body: {
        error: 40006,
        message: expect.stringContaining('The id 1 belongs to a different plant'),
      },
    });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'a', tag: 't' }]);
  }

  it.each([
    ['no tag', '{"id":1,"name":"a"}'],
    ['an empty tag', '{"id":1,"name":"a","tag":""}'],
    ['a name that only looks the same', '{"id":1,"name":"a ","tag":"t"}'],
  ])('the same id with %s is 40006 and changes nothing', async (_kind, body) => {
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    await expectIdTaken(body);
  });

  it.each(TEXT_FIELDS)(
    'the same id with another %s alone is 40006 and changes nothing',
    async (column) => {
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
      await expectIdTaken(JSON.stringify({ id: 1, name: 'a', tag: 't', [column]: 'other' }));
    },
  );

  it.each(TEXT_FIELDS.filter((field) => !isRequired(field)))(
    'no %s and an empty one are different',
    async (column) => {
      const [without, withEmpty] = [{ name: 'a' }, { name: 'a', [column]: '' }];
      for (const [id, first, second] of [
        [1, withEmpty, without],
        [2, without, withEmpty],
      ] as const) {
        expect(await service.post(JSON.stringify({ id, ...first }))).toMatchObject({ status: 200 });
        expect(await service.post(JSON.stringify({ id, ...second }))).toMatchObject({
          body: { error: 40006 },
        });
      }
    },
  );

  it('exactly one of several clients racing for one id wins', async () => {
    for (let id = 1; id <= 20; id++) {
      const names = Array.from({ length: 20 }, (_, i) => `racer ${i}`);
      const responses = await Promise.all(
        names.map((name) => service.post(JSON.stringify({ id, name }))),
      );
      const winners = responses.filter((response) => response.status === 200);
      expect(winners).toHaveLength(1);
      for (const loser of responses.filter((response) => response.status !== 200)) {
        expect(loser).toMatchObject({ status: 400, body: { error: 40006 } });
      }
      const [stored] = await service.database.query('SELECT name FROM plants WHERE id = $1', [id]);
      expect(winners[0]!.body).toEqual(stored);
    }
  });

  it('many plants at once, some of them twice and some in conflict, each get their own response', async () => {
    await service.post('{"id":3,"name":"stored before"}');
    const plants = Array.from({ length: 300 }, (_, i) => ({
      id: i % 100,
      name: i < 200 ? 'first' : 'other',
      tag: `'"\\{},NULL ${i % 100}`,
    }));
    const responses = await Promise.all(
      plants.map(async (plant) => ({ plant, response: await service.post(JSON.stringify(plant)) })),
    );
    const stored = new Map((await service.storedPlants()).map((plant) => [plant.id, plant]));
    expect(stored.size).toBe(100);
    for (const { plant, response } of responses) {
      const winner = stored.get(String(plant.id))!;
      const isSame = winner.name === plant.name && winner.tag === plant.tag;
      expect(response).toMatchObject(
        isSame
          ? { status: 200, body: { name: plant.name } }
          : { status: 400, body: { error: 40006 } },
      );
    }
    expect(stored.get('3')).toMatchObject({ name: 'stored before' });
  });

  it('clients racing with the same plant all succeed, and it is stored once', async () => {
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => service.post('{"id":7,"name":"a","tag":"t"}')),
    );
    expect(responses.map((response) => response.status)).toEqual(Array(50).fill(200));
    expect(await service.storedPlants()).toEqual([{ id: '7', name: 'a', tag: 't' }]);
  });
});

describe('plants that share a batch', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('are inserted in the order of their ids: other batches of the same ids then wait, and cannot deadlock', async () => {
    await service.database.query('CREATE TABLE inserted (turn serial, id bigint)');
    await service.database.query(
      `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN INSERT INTO inserted (id) VALUES (NEW.id); RETURN NEW; END $$`,
    );
    await service.database.query(
      'CREATE TRIGGER note BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION note()',
    );
    const ids = ['30', '-9223372036854775808', '9223372036854775807', '4', '-5'];
    const statuses = await postTogether(
      service,
      ids.map((id) => `{"id":${id},"name":"a"}`),
    );
    expect(statuses).toEqual(Array(ids.length).fill(200));
    expect(
      await service.database.query('SELECT id::text AS id FROM inserted ORDER BY turn OFFSET 1'),
    ).toEqual(
      ['-9223372036854775808', '-5', '4', '30', '9223372036854775807'].map((id) => ({ id })),
    );
  });
});

/** For INSERT … SELECT, Citus counts the rows that were selected, not the rows that were inserted. */
describe('a database that reports a wrong number of inserted rows', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it.each([0, 1, 2, 9])(
    'such as %d, makes the service acknowledge no plant that is not stored',
    async (count) => {
      await service.database.query('TRUNCATE plants');
      await service.post('{"id":1,"name":"a"}');
      service.proxy.pretendInserted(count);
      expect(await service.post('{"id":1,"name":"b"}')).toMatchObject({ body: { error: 40006 } });
      expect(
        await postTogether(service, [
          '{"id":1,"name":"b"}',
          '{"id":2,"name":"a"}',
          '{"id":2,"name":"b"}',
        ]),
      ).toEqual([400, 200, 400]);
      expect(await service.storedPlants()).toEqual([
        { id: '1', name: 'a' },
        { id: '2', name: 'a' },
        { id: '100', name: 'in flight' },
      ]);
    },
  );
});

/** Sends plants while another batch is in flight, so that they share the next one. */
async function postTogether(service: TestService, bodies: readonly string[]): Promise<number[]> {
  await service.post('{}');
  service.proxy.freeze();
  const first = service.post('{"id":100,"name":"in flight"}');
  await until(async () => (await service.metric('plant_store_pending_requests')) === 1);
  const others = bodies.map((body) => service.post(body));
  await until(async () => (await service.metric('plant_store_batch_waiting')) === bodies.length);
  service.proxy.restore();
  return (await Promise.all([first, ...others])).slice(1).map(({ status }) => status);
}
