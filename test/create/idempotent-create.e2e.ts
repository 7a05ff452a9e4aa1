import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { isRequired, TEXT_FIELDS } from '../../src/plants/dto/plant.js';
import { beginPlant, openConnection, readResponses } from '../setup/http/raw-http.js';
import { metricIn, readMetrics } from '../setup/service/metrics.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

let service: TestService;

beforeAll(async () => {
  service = await startService({ BODY_LIMIT: '1mb' });
});
beforeEach(() => service.database.query('TRUNCATE plants; DROP TRIGGER IF EXISTS test ON plants'));
afterAll(() => service.close());

/** Sends plants, in this order, while another batch is in flight, so that they wait together. */
async function postTogether(bodies: readonly string[]): Promise<number[]> {
  const all = ['{"id":100,"name":"in flight"}', ...bodies];
  // Their tokens are checked before the database freezes.
  const sockets = await Promise.all(all.map(() => openConnection(service.port)));
  for (const [i, socket] of sockets.entries()) await beginPlant(socket, service.token, all[i]!);
  await until(async () => (await busyConnections()) === 0);
  service.proxy.freeze();
  for (const [i, socket] of sockets.entries()) {
    socket.write(all[i]!);
    await until(async () =>
      i === 0
        ? (await busyConnections()) === 1
        : (await service.metric('plant_store_batch_waiting')) === i,
    );
  }
  service.proxy.restore();
  const responses = await Promise.all(sockets.map((socket) => readResponses(socket, 1)));
  for (const socket of sockets) socket.destroy();
  return responses.slice(1).map(([response]) => response!.status);
}

async function busyConnections(): Promise<number> {
  const gauge = service.app.get(Registry).getSingleMetric('plant_store_database_connections')!;
  const { values } = await gauge.get();
  return values.find(({ labels }) => labels['state'] === 'busy')!.value;
}

describe('creating is idempotent', () => {
  it.each([
    ['with a tag', '{"id":1,"name":"a","tag":"t"}', { name: 'a', tag: 't' }],
    ['without a tag', '{"id":1,"name":"a"}', { name: 'a' }],
    ['with an empty tag', '{"id":1,"name":"a","tag":""}', { name: 'a', tag: '' }],
  ])('the same plant again, %s, is 200 and stores nothing new', async (_kind, body, plant) => {
    const rows = () => service.database.query('SELECT xmin::text, ctid::text, * FROM plants');
    expect(await service.post(body)).toMatchObject({ status: 200, body: plant });
    const before = await rows();
    expect(await service.post(body)).toMatchObject({ status: 200, body: plant });
    expect(await rows()).toEqual(before);
  });

  it('the same plant, written differently, is 200 and stores nothing new', async () => {
    await service.post('{"id":100,"name":"a"}');
    expect(await service.post('{"id":1.00e2,"name":"\\u0061"}')).toMatchObject({ status: 200 });
    expect(await service.storedPlants()).toHaveLength(1);
  });

  it.each<[string, object]>([
    ['no tag', { tag: undefined }],
    ['an empty tag', { tag: '' }],
    ['a name that ends with a space', { name: '\u00e9 ' }],
    ['a name that only looks the same', { name: 'e\u0301' }],
    ...TEXT_FIELDS.map((field): [string, object] => [`another ${field}`, { [field]: 'other' }]),
  ])('the same id with %s is 40006 and changes nothing', async (_kind, changes) => {
    const plant = { name: '\u00e9', tag: 't' };
    expect(await service.post(JSON.stringify({ id: 1, ...plant }))).toMatchObject({ status: 200 });
    expect(await service.post(JSON.stringify({ id: 1, ...plant, ...changes }))).toMatchObject({
      status: 400,
      body: {
        error: 40006,
        message: expect.stringContaining('The id 1 belongs to a different plant.'),
      },
    });
    expect(await service.storedPlants()).toEqual([{ id: '1', ...plant }]);
  });

  it.each(TEXT_FIELDS.filter((field) => !isRequired(field)))(
    'an empty %s after none is 40006',
    async (field) => {
      expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
      expect(await service.post(`{"id":1,"name":"a","${field}":""}`)).toMatchObject({
        body: { error: 40006 },
      });
    },
  );

  it('ids that a JavaScript number cannot tell apart are different', async () => {
    const ids = ['9223372036854775805', '9223372036854775806', '9223372036854775807'];
    expect(await postTogether(ids.map((id) => `{"id":${id},"name":"${id}"}`))).toEqual([
      200, 200, 200,
    ]);
    expect(await service.storedPlants()).toMatchObject([
      { id: '100' },
      ...ids.map((id) => ({ id, name: id })),
    ]);
  });

  it('exactly one of several clients racing for one id wins', async () => {
    for (let id = 1; id <= 10; id++) {
      const names = Array.from({ length: 20 }, (_, i) => `racer ${i}`);
      const responses = await Promise.all(
        names.map((name) => service.post(JSON.stringify({ id, name }))),
      );
      const winners = responses.filter(({ status }) => status === 200);
      expect(winners).toHaveLength(1);
      for (const loser of responses.filter((response) => response !== winners[0])) {
        expect(loser).toMatchObject({ status: 400, body: { error: 40006 } });
      }
      const [stored] = await service.database.query('SELECT name FROM plants WHERE id = $1', [id]);
      expect(winners[0]!.body).toEqual(stored);
    }
  });

  it('clients racing with the same plant all succeed, and it is stored once', async () => {
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => service.post('{"id":7,"name":"a","tag":"t"}')),
    );
    expect(responses.map((response) => response.status)).toEqual(Array(50).fill(200));
    expect(await service.storedPlants()).toEqual([{ id: '7', name: 'a', tag: 't' }]);
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

  it('the metric of plants has the outcome of each', async () => {
    const outcomes = async () => {
      const counter = service.app.get(Registry).getSingleMetric('plant_store_plants_total')!;
      const { values } = await counter.get();
      return new Map(values.map(({ labels, value }) => [labels['outcome'], value]));
    };
    const before = await outcomes();
    for (const name of ['a', 'a', 'a', 'b', 'b']) await service.post(`{"id":1,"name":"${name}"}`);
    const counted = [...(await outcomes())].map(([outcome, value]) => [
      outcome,
      value - (before.get(outcome) ?? 0),
    ]);
    expect(Object.fromEntries(counted)).toEqual({ created: 1, repeated: 2, refused: 2 });
  });
});

describe('plants that wait together', () => {
  it('are inserted in the order of their ids: other batches of the same ids then wait, and cannot deadlock', async () => {
    await service.database.query(
      `CREATE TABLE inserted (turn serial, id bigint);
       CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
       $$ BEGIN INSERT INTO inserted (id) VALUES (NEW.id); RETURN NEW; END $$;
       CREATE TRIGGER test BEFORE INSERT ON plants FOR EACH ROW EXECUTE FUNCTION note()`,
    );
    const ids = ['30', '-9223372036854775808', '9223372036854775807', '4', '-5'];
    expect(await postTogether(ids.map((id) => `{"id":${id},"name":"a"}`))).toEqual(
      Array(ids.length).fill(200),
    );
    const sorted = ['-9223372036854775808', '-5', '4', '30', '9223372036854775807'];
    expect(
      await service.database.query('SELECT id::text AS id FROM inserted ORDER BY turn OFFSET 1'),
    ).toEqual(sorted.map((id) => ({ id })));
  });

  it('are sent in several batches if their texts are long', async () => {
    const batches = async () =>
      metricIn(await readMetrics(service.url, service.token), 'plant_store_batch_size_count')!;
    const long = 'x'.repeat(600_000);
    // The one that is in flight, which is the first batch, and the two with long texts, which do not fit together.
    await service.post('{"id":0,"name":"a"}');
    const before = await batches();
    const plants = [{ name: long }, { name: 'a', tag: long }, { name: 'a' }];
    expect(
      await postTogether(plants.map((plant, id) => JSON.stringify({ id: id + 1, ...plant }))),
    ).toEqual([200, 200, 200]);
    expect(await batches()).toBe(before + 3);
  });

  /** For INSERT … SELECT, Citus counts the rows that were selected, not the rows that were inserted. */
  it.each([0, 1, 2, 3])(
    'are acknowledged only if stored, even if the database reports %d inserted rows',
    async (count) => {
      await service.post('{"id":1,"name":"a"}');
      service.proxy.pretendInserted(count);
      expect(await service.post('{"id":1,"name":"b"}')).toMatchObject({ body: { error: 40006 } });
      const bodies = ['{"id":1,"name":"b"}', '{"id":2,"name":"a"}', '{"id":2,"name":"b"}'];
      expect(await postTogether(bodies)).toEqual([400, 200, 400]);
      expect(await service.storedPlants()).toEqual([
        { id: '1', name: 'a' },
        { id: '2', name: 'a' },
        { id: '100', name: 'in flight' },
      ]);
    },
  );
});

it('a plant whose row is deleted while it is stored gets 50000', async () => {
  await service.post('{"id":1,"name":"a"}');
  await service.database.query(
    `CREATE FUNCTION remove() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN DELETE FROM plants; RETURN NULL; END $$;
     CREATE TRIGGER test AFTER INSERT ON plants FOR EACH STATEMENT EXECUTE FUNCTION remove()`,
  );
  expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ body: { error: 50000 } });
});
