import { setTimeout as delay } from 'node:timers/promises';
import { waitFor } from '../setup/service/program.js';
import type { Cluster } from './cluster.js';

export const FAULTS = ['kill', 'freeze', 'switchover'] as const;
export type Fault = (typeof FAULTS)[number];

/** Two kills and a switchover, in an order that is as good as any. */
export const SHORT_FORM: readonly Fault[] = ['kill', 'switchover', 'kill'];

/** Longer than Patroni's `ttl`, after which another node takes over. */
const FAILOVER_SECONDS = 60;

/** From a hiccup that nobody notices to a freeze that outlives Patroni's `ttl`. */
const FREEZE_SECONDS = { shortest: 2, longest: 30 } as const;

/**
 * Does something to the primary, and takes it back: a node that was killed starts again when another one is the
 * primary, and a frozen one continues after a random time.
 *
 * @param random returns a whole number from 0, less than its argument
 * @returns what was done, in a few words
 */
export async function cause(
  fault: Fault,
  cluster: Cluster,
  random: (below: number) => number,
  signal: AbortSignal,
): Promise<string> {
  const primary = await cluster.primary();
  if (primary === undefined) throw new Error('The cluster has no primary.');
  switch (fault) {
    case 'kill':
      await primary.kill();
      await waitFor('A failover', FAILOVER_SECONDS, signal, async () => {
        const successor = await cluster.primary();
        return successor !== undefined && successor !== primary;
      });
      await primary.start();
      return `${primary.name} killed`;
    case 'freeze': {
      const { shortest, longest } = FREEZE_SECONDS;
      const seconds = shortest + random(longest - shortest);
      await primary.freeze();
      await delay(seconds * 1000, undefined, { signal });
      await primary.thaw();
      return `${primary.name} frozen for ${seconds} s`;
    }
    case 'switchover':
      await waitFor('A switchover', FAILOVER_SECONDS, signal, async () => {
        return (await primary.switchOver()) || (await cluster.primary()) !== primary;
      });
      return `${primary.name} switched over`;
  }
}
