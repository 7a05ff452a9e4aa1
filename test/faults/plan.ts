import { generator } from '../setup/model/random.js';

/** The faults of one service and its Postgres. */
export const SERVICE_KINDS = [
  'kill-service',
  'kill-postgres',
  'kill-both',
  'freeze-service',
  'freeze-postgres',
  'cut-database',
  'reset-clients',
  'fill-disk',
  'jump-clock',
  'take-connections',
  'lock-table',
] as const;

/** The faults of the primary of a cluster. */
export const CLUSTER_KINDS = ['kill', 'freeze', 'switchover'] as const;

/** Shows that a lost plant is reported: the service itself loses none, so this fault deletes one. It is never chosen by default. */
export const LOSE_PLANT = 'lose-plant' as const;

export type Kind =
  (typeof SERVICE_KINDS)[number] | (typeof CLUSTER_KINDS)[number] | typeof LOSE_PLANT;

const KILLS: readonly Kind[] = ['kill-service', 'kill-postgres', 'kill-both', 'kill'];

/** Of so many faults in a run with a number of kills, one is not a kill. */
const FAULTS_PER_OTHER = 4;

export function isKill(kind: Kind): boolean {
  return KILLS.includes(kind);
}

/** @returns these faults, in an order that the seed chooses */
export function shortPlan(kinds: readonly Kind[], seed: number): Kind[] {
  const random = generator(seed);
  const rest = [...kinds];
  const shuffled: Kind[] = [];
  while (rest.length > 0) shuffled.push(...rest.splice(random(rest.length), 1));
  return shuffled;
}

/**
 * @param kinds at least one of them a kill
 * @returns so many kills, with other faults among them
 */
export function planOfKills(kinds: readonly Kind[], kills: number, seed: number): Kind[] {
  const random = generator(seed);
  const [killing, others] = [kinds.filter(isKill), kinds.filter((kind) => !isKill(kind))];
  const chosen: Kind[] = [];
  let left = kills;
  while (left > 0) {
    const isOther = others.length > 0 && random(FAULTS_PER_OTHER) === 0;
    if (!isOther) left--;
    const from = isOther ? others : killing;
    chosen.push(from[random(from.length)]!);
  }
  return chosen;
}

/** @returns so many faults, each kind equally likely */
export function planOfEvents(kinds: readonly Kind[], events: number, seed: number): Kind[] {
  const random = generator(seed);
  return Array.from({ length: events }, () => kinds[random(kinds.length)]!);
}
