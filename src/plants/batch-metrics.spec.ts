import { expect, it } from '@jest/globals';
import { Registry } from 'prom-client';
import { BatchMetrics } from './batch-metrics.js';

it('the metrics of batches tell sizes from 1 to 256 and waits from 0.1 ms to 1 s apart', async () => {
  const registry = new Registry();
  const metrics = new BatchMetrics(registry, () => 0);
  metrics.observe(1, 0.1);
  metrics.observe(256, 1000);
  const text = await registry.metrics();
  for (const [name, least, most] of [
    ['plant_store_batch_size', 1, 256],
    ['plant_store_batch_wait_seconds', 0.0001, 1],
  ]) {
    expect(text).toContain(`${name}_bucket{le="${least}"} 1\n`);
    expect(text).toContain(`${name}_bucket{le="${most}"} 2\n`);
  }
});
