import { collectDefaultMetrics, Counter, Gauge, Registry } from 'prom-client';
import { version } from '../config/version.js';
import { countLostEntries } from '../logging/logger.js';

/** A registry with the metrics of Node and of the log, and the version. */
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
    registers: [registry],
  }).set({ version }, 1);
  return registry;
}
