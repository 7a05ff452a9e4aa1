import { setTimeout as delay } from 'node:timers/promises';
import type { CLUSTER_KINDS } from '../plan.js';
import { waitFor } from '../wait-for.js';
import type { Fault } from '../rig.js';
import type { Cluster } from './cluster.js';
import type { ClusterNode } from './node.js';

/** Longer than Patroni's `ttl`, after which another node takes over. */
const FAILOVER_SECONDS = 60;

/** From a hiccup that nobody notices to a freeze that outlives Patroni's `ttl`. */
const FREEZE_SECONDS = { shortest: 2, longest: 30 } as const;

/**
 * Each does something to the primary, and takes it back: a node that was killed starts again when another one is the
 * primary, and a frozen one continues after a random time.
 */
export function clusterFaults(
  cluster: Cluster,
  signal: AbortSignal,
): Readonly<Record<(typeof CLUSTER_KINDS)[number], Fault>> {
  const findPrimary = async (): Promise<ClusterNode> => {
    const primary = await cluster.primary();
    if (primary === undefined) throw new Error('The cluster has no primary.');
    return primary;
  };
  return {
    async kill() {
      const primary = await findPrimary();
      await primary.kill();
      await waitFor('A failover', FAILOVER_SECONDS, signal, async () => {
        const successor = await cluster.primary();
        return successor !== undefined && successor !== primary;
      });
      await primary.start();
      return `${primary.name} killed`;
    },

    async freeze({ random }) {
      const primary = await findPrimary();
      const { shortest, longest } = FREEZE_SECONDS;
      const seconds = shortest + random(longest - shortest);
      await primary.freeze();
      await delay(seconds * 1000, undefined, { signal });
      await primary.thaw();
      return `${primary.name} frozen for ${seconds} s`;
    },

    async switchover() {
      const primary = await findPrimary();
      await waitFor('A switchover', FAILOVER_SECONDS, signal, async () => {
        return (await primary.switchOver()) || (await cluster.primary()) !== primary;
      });
      return `${primary.name} switched over`;
    },
  };
}
