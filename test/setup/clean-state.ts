import { readdir, readlink } from 'node:fs/promises';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Registry } from 'prom-client';
import { DataSource } from 'typeorm';
import { until } from './until.js';

/** The gauges that are 0 while no request is in flight, with the state that counts where a gauge has several. */
const GAUGES: readonly (readonly [name: string, state?: string])[] = [
  ['plant_store_pending_requests'],
  ['plant_store_token_lookups'],
  ['plant_store_batch_waiting'],
  ['plant_store_database_waiting'],
  ['plant_store_database_connections', 'busy'],
];

/** A busy machine needs several seconds to end what an idle one ends at once. */
const LIMIT_MS = 20_000;

/** What this process holds open: descriptors, such as `12 socket:[345]`, and counts by kind, such as timers. */
export interface ProcessState {
  readonly descriptors: ReadonlySet<string>;
  readonly resources: ReadonlyMap<string, number>;
}

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

/**
 * Waits until this process holds no more than before.
 *
 * @throws Error that names what is still held
 */
export function untilReleased(before: ProcessState): Promise<void> {
  return untilNothingHeld(async () => {
    const { descriptors, resources } = await readProcessState();
    const opened = [...descriptors].filter((it) => !before.descriptors.has(it));
    const started = [...resources].filter(([kind, n]) => n > (before.resources.get(kind) ?? 0));
    return [
      ...opened.map((it) => `descriptor ${it}`),
      ...started.map(([kind, n]) => `${kind}: ${n}, before ${before.resources.get(kind) ?? 0}`),
    ];
  });
}

export async function readProcessState(): Promise<ProcessState> {
  const resources = new Map<string, number>();
  // Only what keeps the process alive: timers and sockets without a reference are not among these.
  for (const kind of process.getActiveResourcesInfo()) {
    resources.set(kind, (resources.get(kind) ?? 0) + 1);
  }
  return { descriptors: new Set(await openDescriptors()), resources };
}

/** @returns an empty list on a system without /proc */
async function openDescriptors(): Promise<string[]> {
  const numbers = await readdir('/proc/self/fd').catch(() => []);
  const links = await Promise.all(
    // The descriptor of the folder itself is closed by now.
    numbers.map((fd) =>
      readlink(`/proc/self/fd/${fd}`).then(
        (to) => `${fd} ${to}`,
        () => '',
      ),
    ),
  );
  // Node opens anonymous descriptors for its own threads, and an embedded Postgres its files, when they need them.
  return links.filter((link) => link !== '' && !/ anon_inode:|plant-store-test-/.test(link));
}

/**
 * Waits until `list` is empty.
 *
 * @param list returns what is still held, in words
 * @throws Error that names what is still held
 */
export async function untilNothingHeld(list: () => Promise<readonly string[]>): Promise<void> {
  // A timer, because a test may hold the clocks.
  const limit = AbortSignal.timeout(LIMIT_MS);
  let held: readonly string[] = [];
  await until(async () => (held = await list()).length === 0 || limit.aborted);
  if (held.length > 0) {
    throw new Error(`Still held after ${LIMIT_MS / 1000} seconds: ${held.join('; ')}`);
  }
}
