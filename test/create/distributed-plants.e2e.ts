import { afterEach, describe, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { metricIn } from '../setup/service/metrics.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

/** Citus itself is tested by `test/run sharded`; here, its list of distributed tables is enough. */
describe('plants that Citus distributes over several servers', () => {
  let service: TestService;

  afterEach(() => service.close());

  /** Every id below 1000 has a shard of its own. */
  async function distribute(): Promise<void> {
    await service.database.query(`
      CREATE TABLE pg_dist_partition AS SELECT 'plants'::regclass AS logicalrelid, 'h' AS partmethod`);
    await service.database.query(`
      CREATE TABLE pg_dist_shard AS
      SELECT 'plants'::regclass AS logicalrelid, hashint8(id)::text AS shardminvalue
      FROM generate_series(0, 999) AS id`);
  }

  /** Makes the service look again, as after a failover. */
  async function loseConnections(): Promise<void> {
    service.proxy.cut();
    service.proxy.restore();
    await until(async () => (await service.post('{"id":1,"name":"a"}')).status === 200);
  }

  async function batches(): Promise<number> {
    const metrics = await service.app
      .get(Registry)
      .getSingleMetricAsString('plant_store_batch_size');
    return metricIn(metrics, 'plant_store_batch_size_count')!;
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

  it('share a batch only with plants of their shard, from the next connection on', async () => {
    service = await startService();
    await until(async () => (await batchesOfMany()) < PLANTS);
    await distribute();
    await loseConnections();
    await until(async () => (await batchesOfMany()) === PLANTS);
    await service.database.query('TRUNCATE pg_dist_partition');
    await loseConnections();
    await until(async () => (await batchesOfMany()) < PLANTS);
  });
});
