import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { version } from '../config/version.js';
import { countLostEntries } from '../logging/logger.js';

/** A registry with the metrics that every process has: those of Node and of its log, and the version. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const lost: Counter = new Counter({
    name: 'plant_store_log_entries_lost_total',
    help: 'Log entries that could not be written.',
    registers: [registry],
    collect() {
      lost.reset();
      lost.inc(countLostEntries());
    },
  });
  new Gauge({
    name: 'plant_store_build_info',
    help: 'Always 1, with the version of the service.',
    labelNames: ['version'],
    // The processes of one service have one version.
    aggregator: 'first',
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}

/** Every process declares this counter, even without workers, because an alert on a missing metric never fires. */
export function workerRestarts(registry: Registry): Counter {
  return new Counter({
    name: 'plant_store_worker_restarts_total',
    help: 'Workers that ended unexpectedly and were replaced.',
    registers: [registry],
  });
}
