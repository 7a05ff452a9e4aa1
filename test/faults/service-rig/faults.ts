import { setTimeout as delay } from 'node:timers/promises';
import type { DatabaseProxy } from '../../setup/database/database-proxy.js';
import type { SmallDisk } from '../../setup/process/disk.js';
import type { Rig } from '../rig.js';
import type { ServiceProcess } from '../service.js';
import { connect, fillLog, restart, takeConnections, type FaultServer } from './postgres.js';

/** From a hiccup that nobody notices to one that outlasts all time limits of the service. */
const HOLD_MS = { shortest: 200, longest: 4000 } as const;

/** An hour is the shortest jump, and about a year the longest. */
const JUMP_HOURS = 9000;

/** Everything that can be disturbed. */
export interface Targets {
  readonly server: FaultServer;
  readonly service: ServiceProcess;
  readonly signal: AbortSignal;
}

/** The faults that need nothing but a service and its Postgres. */
export function serviceFaults({ server, service, signal }: Targets): Rig['faults'] {
  return {
    async 'kill-service'() {
      await service.kill();
      await service.start();
      await service.becomesReady();
      return 'service killed';
    },

    async 'kill-postgres'() {
      await server.kill();
      await server.start();
      return 'Postgres killed';
    },

    async 'kill-both'() {
      await Promise.all([service.kill(), server.kill()]);
      await service.start();
      await server.start();
      await service.becomesReady();
      return 'service and Postgres killed';
    },

    async 'freeze-service'({ random }) {
      service.freeze();
      const held = await hold(random, signal);
      service.thaw();
      return `service frozen for ${held}`;
    },

    async 'freeze-postgres'({ random }) {
      await server.freeze();
      const held = await hold(random, signal).finally(() => server.thaw());
      return `Postgres frozen for ${held}`;
    },

    async 'reset-clients'({ random, resetConnections }) {
      const times = 1 + random(10);
      for (let time = 0; time < times; time++) {
        resetConnections();
        await delay(random(50));
      }
      return `connections of clients reset ${times} times`;
    },

    async 'take-connections'({ random }) {
      const takers = await takeConnections(server, signal);
      const held = await hold(random, signal);
      await Promise.all(takers.map((taker) => taker.end()));
      return `all ${takers.length} connections of Postgres taken for ${held}`;
    },

    async 'lock-table'({ random }) {
      const locker = await connect(server);
      await locker.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
      const held = await hold(random, signal);
      await locker.end();
      return `table locked for ${held}, so that every connection of the pool waits`;
    },
  };
}

/** @param proxy between the service and Postgres */
export function proxyFaults({ service, signal }: Targets, proxy: DatabaseProxy): Rig['faults'] {
  return {
    async 'cut-database'({ random }) {
      proxy.cut();
      const held = await hold(random, signal);
      proxy.restore();
      return `connections to Postgres cut for ${held}`;
    },

    async 'jump-clock'({ random }) {
      const hours = (1 + random(JUMP_HOURS)) * (random(2) === 0 ? 1 : -1);
      await service.setClock(hours * 3600);
      // What the service remembers from before a jump is out of date.
      await service.becomesReady();
      const held = await hold(random, signal);
      await service.setClock(0);
      proxy.cut();
      await service.becomesUnready();
      proxy.restore();
      await service.becomesReady();
      return `clock of the service moved by ${hours} hours for ${held}, then connections to Postgres cut`;
    },
  };
}

/** @param disk has the data of Postgres */
export function diskFaults({ server, signal }: Targets, disk: SmallDisk): Rig['faults'] {
  return {
    async 'fill-disk'({ random }) {
      await disk.fill();
      const held = await hold(random, signal);
      const isLogFull = random(2) === 0;
      if (isLogFull) await fillLog(server);
      await disk.free();
      const isStarted = await restart(server, signal);
      return [
        `disk full for ${held}`,
        ...(isLogFull ? ['also for the log of Postgres'] : []),
        ...(isStarted ? ['Postgres ended, and was started'] : []),
      ].join(', ');
    },
  };
}

async function hold(random: (below: number) => number, signal: AbortSignal): Promise<string> {
  const { shortest, longest } = HOLD_MS;
  const milliseconds = shortest + random(longest - shortest);
  await delay(milliseconds, undefined, { signal });
  return `${(milliseconds / 1000).toFixed(1)} s`;
}
