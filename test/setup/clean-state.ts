import type { NestExpressApplication } from '@nestjs/platform-express';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { untilNothingHeld } from './until.js';

/** The gauges that are 0 while no request is in flight, with the state that counts where a gauge has several. */
const GAUGES: readonly (readonly [name: string, state?: string])[] = [
  ['plant_store_pending_requests'],
  ['plant_store_token_lookups'],
  ['plant_store_batch_waiting'],
  ['plant_store_database_waiting'],
  ['plant_store_database_connections', 'busy'],
];

/**
 * Waits until a service has released all that its requests took: places, look-ups, plants in the queue, connections.
 *
 * @throws Error that names what is still held
 */
export function untilIdle(app: NestExpressApplication): Promise<void> {
  return untilNothingHeld(async () => {
    const held: string[] = [];
    for (const [name, state] of GAUGES) {
      // A service that has stopped has no pool any more.
      if (name.includes('_database_') && !app.get(DataSource).isInitialized) continue;
      const { values } = await app.get(Registry).getSingleMetric(name)!.get();
      const value = values.find(({ labels }) => labels['state'] === state)?.value;
      if (value !== 0) held.push(`${name}${state === undefined ? '' : ` (${state})`} is ${value}`);
    }
    return held;
  });
}
