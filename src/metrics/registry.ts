import { collectDefaultMetrics, Counter, Registry } from 'prom-client';

/** A registry with what every process measures of itself. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}

/** Declares how often workers died. Every process shows it: a metric that is missing alerts nobody. */
export function workerRestarts(registry: Registry): Counter {
  return new Counter({
    name: 'plant_store_worker_restarts_total',
    help: 'Workers that ended unasked and were replaced.',
    registers: [registry],
  });
}
