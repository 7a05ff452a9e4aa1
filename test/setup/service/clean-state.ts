import type { NestExpressApplication } from '@nestjs/platform-express';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { METRICS_TOKEN, metricIn, readMetrics } from './metrics.js';
import { untilNothingHeld } from '../time/until.js';

/** The gauges that are 0 while no request is in flight, with the state that counts where a gauge has several. */
const GAUGES: readonly (readonly [name: string, state?: string])[] = [
  ['plant_store_pending_requests'],
  ['plant_store_token_lookups'],
  ['plant_store_batch_waiting'],
  ['plant_store_database_waiting'],
  ['plant_store_database_connections', 'busy'],
];

/**
 * Waits until a service has released all that its requests took: places, lookups, plants in the queue, connections.
 *
 * @throws Error that names what is still held
 */
export function untilIdle(app: NestExpressApplication): Promise<void> {
  return untilGaugesAreZero(() => async (name, state) => {
    // A service that has stopped has no pool any more.
    if (name.includes('_database_') && !app.get(DataSource).isInitialized) return 0;
    const { values } = await app.get(Registry).getSingleMetric(name)!.get();
    return values.find(({ labels }) => labels['state'] === state)?.value;
  });
}

/**
 * The same for a service in a process of its own. Several workers send their metrics once a second.
 *
 * @param token may read the metrics; METRICS_TOKEN by default
 */
export function untilIdleAt(url: string, token = METRICS_TOKEN): Promise<void> {
  return untilGaugesAreZero(async () => {
    const metrics = await readMetrics(url, token);
    return (name, state) => metricIn(metrics, name, state);
  });
}

/** The value of a gauge; undefined for one that does not exist. */
type ValueOf = (name: string, state?: string) => number | undefined | Promise<number | undefined>;

function untilGaugesAreZero(read: () => ValueOf | Promise<ValueOf>): Promise<void> {
  return untilNothingHeld(async () => {
    const valueOf = await read();
    const held: string[] = [];
    for (const [name, state] of GAUGES) {
      const value = await valueOf(name, state);
      if (value !== 0) held.push(`${name}${state === undefined ? '' : ` (${state})`} is ${value}`);
    }
    return held;
  });
}
