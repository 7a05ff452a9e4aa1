import { Injectable } from '@nestjs/common';
import { Gauge, Histogram, Registry } from 'prom-client';

/** Shows how well plants share statements. */
@Injectable()
export class BatchMetrics {
  private readonly sizes: Histogram;
  private readonly waits: Histogram;
  private queueLength: () => number = () => 0;

  constructor(registry: Registry) {
    const registers = [registry];
    this.sizes = new Histogram({
      name: 'plant_store_batch_size',
      help: 'Plants that shared one statement and one commit.',
      buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256],
      registers,
    });
    this.waits = new Histogram({
      name: 'plant_store_batch_wait_seconds',
      help: 'How long the first plant of a batch was in the queue.',
      buckets: [0.0001, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1],
      registers,
    });
    const queueLength = () => this.queueLength();
    new Gauge({
      name: 'plant_store_batch_waiting',
      help: 'Plants in the queue for a batch.',
      registers,
      collect() {
        this.set(queueLength());
      },
    });
  }

  /** @param queueLength how many plants are in the queue now */
  watch(queueLength: () => number): void {
    this.queueLength = queueLength;
  }

  /** @param waited milliseconds */
  observe(size: number, waited: number): void {
    this.sizes.observe(size);
    this.waits.observe(waited / 1000);
  }
}
