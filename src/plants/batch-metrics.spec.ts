import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { BatchMetrics } from './batch-metrics.js';

it('the wait of a batch is measured in seconds', async () => {
  const registry = new Registry();
  new BatchMetrics(registry, () => 0).observe(3, 40);
  const metrics = await registry.metrics();
  expect(metrics).toContain('plant_store_batch_wait_seconds_sum 0.04\n');
  expect(metrics).toContain('plant_store_batch_size_sum 3\n');
});
