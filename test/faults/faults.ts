import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseProxy } from '../setup/database/database-proxy.js';
import type { SmallDisk } from './disk.js';
import type { Load } from './load.js';
import type { Kind } from './plan.js';
import { connect, fillLog, restart, takeConnections } from './postgres.js';
import type { FaultServer } from './rig.js';
import type { Service } from './service.js';

/** From a hiccup that nobody notices to one that outlasts all time limits of the service. */
const HOLD_MS = { shortest: 200, longest: 4000 } as const;

/** An hour is the shortest jump, and about a year the longest. */
const JUMP_HOURS = 9000;

/** Everything that can be disturbed. */
export interface Targets {
  readonly server: FaultServer;
  /** Between the service and the server; undefined for the embedded Postgres. */
  readonly proxy: DatabaseProxy | undefined;
  readonly service: Service;
  readonly load: Load;
  /** The disk of the server, if it has one of its own. */
  readonly disk: SmallDisk | undefined;
  /** @returns a whole number from 0, less than `below` */
  readonly random: (below: number) => number;
  readonly signal: AbortSignal;
}

/**
 * Causes one fault, and takes it back.
 *
 * @returns what was done, in a few words
 * @throws Error when it cannot be taken back
 */
export function cause(kind: Kind, targets: Targets): Promise<string> {
  return FAULTS[kind](targets);
}

const FAULTS: Readonly<Record<Kind, (targets: Targets) => Promise<string>>> = {
  async 'kill-service'({ service }) {
    await service.kill();
    await service.start();
    await service.becomesReady();
    return 'service killed';
  },

  async 'kill-postgres'({ server }) {
    await server.kill();
    await server.start();
    return 'Postgres killed';
  },

  async 'kill-both'({ service, server }) {
    await Promise.all([service.kill(), server.kill()]);
    await service.start();
    await server.start();
    await service.becomesReady();
    return 'service and Postgres killed';
  },

  async 'freeze-service'(targets) {
    targets.service.freeze();
    const held = await hold(targets);
    targets.service.thaw();
    return `service frozen for ${held}`;
  },

  async 'freeze-postgres'(targets) {
    await targets.server.freeze();
    const held = await hold(targets).finally(() => targets.server.thaw());
    return `Postgres frozen for ${held}`;
  },

  async 'cut-database'(targets) {
    targets.proxy!.cut();
    const held = await hold(targets);
    targets.proxy!.restore();
    return `connections to Postgres cut for ${held}`;
  },

  async 'reset-clients'({ load, random }) {
    const times = 1 + random(10);
    for (let time = 0; time < times; time++) {
      load.resetConnections();
      await delay(random(50));
    }
    return `connections of clients reset ${times} times`;
  },

  async 'fill-disk'(targets) {
    const { disk, server, random } = targets;
    if (disk === undefined) throw new Error('The server has no disk of its own.');
    await disk.fill();
    const held = await hold(targets);
    const isLogFull = random(2) === 0;
    if (isLogFull) await fillLog(server);
    await disk.free();
    const isStarted = await restart(server, targets.signal);
    return [
      `disk full for ${held}`,
      ...(isLogFull ? ['also for the log of Postgres'] : []),
      ...(isStarted ? ['Postgres ended, and was started'] : []),
    ].join(', ');
  },

  async 'jump-clock'(targets) {
    const { service, proxy, random } = targets;
    const hours = (1 + random(JUMP_HOURS)) * (random(2) === 0 ? 1 : -1);
    await service.setClock(hours * 3600);
    // What the service remembers from before a jump is out of date.
    await service.becomesReady();
    const held = await hold(targets);
    await service.setClock(0);
    proxy!.cut();
    await service.becomesUnready();
    proxy!.restore();
    await service.becomesReady();
    return `clock of the service moved by ${hours} hours for ${held}, then connections to Postgres cut`;
  },

  async 'take-connections'(targets) {
    const takers = await takeConnections(targets.server, targets.signal);
    const held = await hold(targets);
    await Promise.all(takers.map((taker) => taker.end()));
    return `all ${takers.length} connections of Postgres taken for ${held}`;
  },

  async 'lose-plant'(targets) {
    await targets.server.query(
      'DELETE FROM plants WHERE id = (SELECT id FROM plants ORDER BY created_at LIMIT 1)',
    );
    return 'a plant deleted';
  },

  async 'lock-table'(targets) {
    const locker = await connect(targets.server);
    await locker.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    const held = await hold(targets);
    await locker.end();
    return `table locked for ${held}, so that every connection of the pool waits`;
  },
};

async function hold({ random, signal }: Targets): Promise<string> {
  const { shortest, longest } = HOLD_MS;
  const milliseconds = shortest + random(longest - shortest);
  await delay(milliseconds, undefined, { signal });
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
