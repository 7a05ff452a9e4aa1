import { Gauge, Histogram, type Registry } from 'prom-client';

export class BatchMetrics {
  private readonly sizes: Histogram;
  private readonly waits: Histogram;

  /** @param queueLength the number of plants in the queue now */
  constructor(registry: Registry, queueLength: () => number) {
    const registers = [registry];
    this.sizes = new Histogram({
      name: 'plant_store_batch_size',
      help: 'Plants in a batch: one statement and one commit.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    });
    this.waits = new Histogram({
      name: 'plant_store_batch_wait_seconds',
      help: 'How long the first plant of a batch was in the queue.',
      buckets: [0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1],
      registers,
    });
    const gauge: Gauge = new Gauge({
      name: 'plant_store_batch_waiting',
      help: 'Plants in the queue for a batch.',
      registers,
      collect: () => gauge.set(queueLength()),
    });
  }

  /** @param wait of the first plant, in milliseconds */
  observe(size: number, wait: number): void {
    this.sizes.observe(size);
    this.waits.observe(wait / 1000);
  }
}
