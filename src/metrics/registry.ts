import { collectDefaultMetrics, Counter, Registry } from 'prom-client';

/** A registry with the default metrics of a Node process. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
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
