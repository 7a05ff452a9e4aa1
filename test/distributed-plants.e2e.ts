import { afterEach, describe, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { startService, type TestService } from './setup/service.js';
import { until } from './setup/until.js';

/** Citus itself is tested by `npm run test:sharded`; here, its list of distributed tables is enough. */
describe('plants that Citus distributes over several servers', () => {
  let service: TestService;

  afterEach(() => service.close());

  async function distribute(): Promise<void> {
    await service.database.query(
      'CREATE TABLE pg_dist_partition (logicalrelid regclass, partmethod "char")',
    );
    await service.database.query(`INSERT INTO pg_dist_partition VALUES ('plants', 'h')`);
  }

  /** Makes the service look again, as after a fail-over. */
  async function loseConnections(): Promise<void> {
    service.proxy.cut();
    service.proxy.restore();
    await until(async () => (await service.post('{"id":1,"name":"a"}')).status === 200);
  }

  async function batches(): Promise<number> {
    const metrics = await service.app
      .get(Registry)
      .getSingleMetricAsString('plant_store_batch_size');
    return Number(/^plant_store_batch_size_count (\d+)$/m.exec(metrics)![1]);
  }

  let nextId = 2;
  const PLANTS = 20;

  /** @returns the number of batches in which plants that arrive together are sent */
  async function batchesOfMany(): Promise<number> {
    const before = await batches();
    await Promise.all(
      Array.from({ length: PLANTS }, () => service.post(`{"id":${nextId++},"name":"a"}`)),
    );
    return (await batches()) - before;
  }

  it('are sent one by one from the next connection on, and in batches in one table again', async () => {
    service = await startService();
    await until(async () => (await batchesOfMany()) < PLANTS);
    await distribute();
    await loseConnections();
    await until(async () => (await batchesOfMany()) === PLANTS);
    await service.database.query('TRUNCATE pg_dist_partition');
    await loseConnections();
    await until(async () => (await batchesOfMany()) < PLANTS);
  });

  it('are sent in batches if a setting says so', async () => {
    service = await startService({ DATABASE_BATCH_SIZE: '256' });
    await distribute();
    await loseConnections();
    await until(async () => (await batchesOfMany()) < PLANTS);
  });
});
