import type { IncomingMessage } from 'node:http';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { usePlantsDatabase } from '../../test/plants/plants-database.js';
import { startCollector, type Collector } from '../../test/setup/http/collector.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { idTaken } from '../errors/errors.js';
import { startRequestSpan, startTracing, withRequestSpan } from '../tracing/tracing.js';
import type { NewPlant } from './dto/plant.js';
import { PlantsService } from './plants.service.js';

const [INTERNAL_KIND, CLIENT_KIND] = [1, 3];
const REFUSED: unknown = expect.objectContaining({ code: idTaken.code });

describe('creating plants', () => {
  const database = usePlantsDatabase();
  let registry: Registry;
  let service: PlantsService;

  /** The response to each plant, or why it was refused. They arrive together, so they are one batch. */
  const create = async (...plants: NewPlant[]): Promise<unknown[]> => {
    const results = await Promise.allSettled(
      plants.map((plant) => service.create(plant, { closed: false })),
    );
    return results.map((result) =>
      result.status === 'fulfilled' ? result.value : (result.reason as unknown),
    );
  };

  const outcomes = async (): Promise<Record<string, number>> => {
    const { values } = await registry.getSingleMetric('plant_store_plants_total')!.get();
    return Object.fromEntries(
      values.map(({ labels, value }) => [String(labels['outcome']), value]),
    );
  };

  beforeEach(() => {
    registry = new Registry();
    service = new PlantsService(database.plants, undefined, database.configure(), registry);
  });

  it('stores each plant, and responds with its name, and its tag only if it has one', async () => {
    const [max, min] = [9223372036854775807n, -9223372036854775808n];
    expect(
      await create({ id: max, name: 'a', tag: 'b' }, { id: 2n, name: '' }, { id: min, name: 'c' }),
    ).toStrictEqual([{ name: 'a', tag: 'b' }, { name: '' }, { name: 'c' }]);
    expect(await database.stored()).toEqual([
      { id: String(min), name: 'c' },
      { id: '2', name: '' },
      { id: String(max), name: 'a', tag: 'b' },
    ]);
    expect(await outcomes()).toEqual({ created: 3 });
  });

  it('responds to the same plant as before, and stores nothing new', async () => {
    const plants: NewPlant[] = [
      { id: 1n, name: 'a', tag: 'b' },
      { id: 2n, name: 'c' },
    ];
    const responses = await create(...plants);
    const rows = () => database.query('SELECT * FROM plants ORDER BY id');
    const before = await rows();
    expect(await create(...plants)).toStrictEqual(responses);
    expect(await create(plants[0]!)).toStrictEqual([responses[0]]);
    expect(await rows()).toEqual(before);
    expect(await outcomes()).toEqual({ created: 2, repeated: 3 });
  });

  it.each<[string, Omit<NewPlant, 'id'>]>([
    ['another name', { name: 'A', tag: 'b' }],
    ['another tag', { name: 'a', tag: 'B' }],
    ['no tag', { name: 'a' }],
  ])('refuses an id that belongs to a plant with %s, and changes nothing', async (_kind, other) => {
    await create({ id: 1n, name: 'a', tag: 'b' });
    const [error] = await create({ id: 1n, ...other });
    expect(error).toEqual(REFUSED);
    expect((error as Error).message).toContain('The id 1 belongs to a different plant.');
    expect(await database.stored()).toEqual([{ id: '1', name: 'a', tag: 'b' }]);
    expect(await outcomes()).toEqual({ created: 1, refused: 1 });
  });

  it('keeps ids apart that differ in a digit which JavaScript numbers do not have', async () => {
    const [even, odd, next] = [9223372036854775806n, 9223372036854775807n, 9223372036854775805n];
    expect(await create({ id: even, name: 'a' }, { id: odd, name: 'b' })).toEqual([
      { name: 'a' },
      { name: 'b' },
    ]);
    expect(await create({ id: even, name: 'a' }, { id: next, name: 'c' })).toEqual([
      { name: 'a' },
      { name: 'c' },
    ]);
    expect(await database.stored()).toEqual([
      { id: String(next), name: 'c' },
      { id: String(even), name: 'a' },
      { id: String(odd), name: 'b' },
    ]);
    expect(await outcomes()).toEqual({ created: 3, repeated: 1 });
    const [error] = await create({ id: odd, name: 'x' });
    expect((error as Error).message).toContain(`The id ${odd} belongs`);
  });

  it('takes texts for different ones whose characters are equivalent, but not the same', async () => {
    const [composed, decomposed] = ['\u00e9', 'e\u0301'];
    await create({ id: 1n, name: composed, tag: composed });
    expect(await create({ id: 1n, name: decomposed, tag: composed })).toEqual([REFUSED]);
    expect(await create({ id: 1n, name: composed, tag: decomposed })).toEqual([REFUSED]);
  });

  it('takes an empty tag for another one than none', async () => {
    await create({ id: 1n, name: 'a' });
    expect(await create({ id: 1n, name: 'a', tag: '' })).toEqual([REFUSED]);
  });

  it('stores the first of several plants with one id that arrive together', async () => {
    const a = { name: 'a', tag: 'b' };
    expect(
      await create(
        { id: 1n, ...a },
        { id: 1n, name: 'x' },
        { id: 2n, name: 'c' },
        { id: 1n, ...a },
        { id: 1n, name: 'y' },
      ),
    ).toEqual([a, REFUSED, { name: 'c' }, a, REFUSED]);
    expect(await database.stored()).toEqual([
      { id: '1', ...a },
      { id: '2', name: 'c' },
    ]);
    expect(await outcomes()).toEqual({ created: 2, repeated: 1, refused: 2 });
  });

  it('compares repeats that arrive with new plants with what is stored', async () => {
    await create({ id: 1n, name: 'a' }, { id: 2n, name: 'b' });
    expect(
      await create(
        { id: 1n, name: 'a' },
        { id: 3n, name: 'c' },
        { id: 2n, name: 'x' },
        { id: 2n, name: 'b' },
      ),
    ).toEqual([{ name: 'a' }, { name: 'c' }, REFUSED, { name: 'b' }]);
  });

  it('sends plants with long texts in several batches', async () => {
    const long = 'a'.repeat(600_000);
    const responses = await create(
      { id: 1n, name: long },
      { id: 2n, name: 'b', tag: long },
      { id: 3n, name: 'c' },
    );
    expect(responses).toEqual([{ name: long }, { name: 'b', tag: long }, { name: 'c' }]);
    const metrics = await registry.metrics();
    expect(metrics).toContain('plant_store_batch_size_sum 3');
    expect(metrics).toContain('plant_store_batch_size_count 2');
  });

  it('has in its metric how many plants wait', async () => {
    const waiting = async () => {
      const { values } = await registry.getSingleMetric('plant_store_batch_waiting')!.get();
      return values[0]!.value;
    };
    const created = create({ id: 1n, name: 'a' }, { id: 2n, name: 'b' });
    expect(await waiting()).toBe(2);
    await created;
    expect(await waiting()).toBe(0);
  });

  describe('in a trace', () => {
    const resources = useResources();
    let collector: Collector;
    let stop: () => Promise<void>;

    beforeEach(async () => {
      collector = await startCollector();
      resources.defer(() => collector.close());
      stop = await startTracing(collector.url, pino({ enabled: false }));
      resources.defer(() => stop());
    });

    /** Creates plants in one request. */
    async function createTraced(...plants: NewPlant[]): Promise<void> {
      const span = startRequestSpan({ method: 'POST', headers: {} } as IncomingMessage)!;
      await new Promise((resolve) => {
        withRequestSpan(span, () => resolve(create(...plants)));
      });
      span.end();
    }

    it('is a span from the request of a plant to the statement of its batch', async () => {
      await createTraced({ id: 1n, name: 'a' });
      await stop();
      const [request, store, postgres] = ['POST', 'store', 'postgres'].map((name) =>
        collector.spans.find((span) => span.name === name)!,
      );
      expect(store).toMatchObject({
        kind: INTERNAL_KIND,
        parentSpanId: request!.spanId,
        attributes: [],
      });
      expect(postgres).toMatchObject({
        kind: CLIENT_KIND,
        parentSpanId: store!.spanId,
        attributes: [
          {
            key: 'db.query.text',
            value: { stringValue: expect.stringContaining('INSERT INTO plants') as unknown },
          },
        ],
      });
    });

    it('is a second statement only where an id is taken', async () => {
      const statements = () => collector.spans.filter(({ name }) => name === 'postgres').length;
      await createTraced({ id: 1n, name: 'a' }, { id: 1n, name: 'a' });
      await stop();
      expect(statements()).toBe(1);
      stop = await startTracing(collector.url, pino({ enabled: false }));
      await createTraced({ id: 1n, name: 'a' }, { id: 2n, name: 'b' });
      await stop();
      expect(statements()).toBe(1 + 2);
    });
  });

  it('neither acknowledges nor refuses a plant whose row disappears meanwhile', async () => {
    await create({ id: 1n, name: 'a' });
    await database.query(`
      CREATE FUNCTION remove_plants() RETURNS trigger LANGUAGE plpgsql
      AS 'BEGIN DELETE FROM plants; RETURN NULL; END'`);
    await database.query(`
      CREATE TRIGGER remove_plants AFTER INSERT ON plants
      FOR EACH STATEMENT EXECUTE FUNCTION remove_plants()`);
    const [error] = await create({ id: 1n, name: 'a' });
    expect(error).toEqual(new Error('Plant 1 was neither inserted nor found'));
    expect(await outcomes()).toEqual({ created: 1 });
  });
});
