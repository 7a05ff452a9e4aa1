import { generator } from '../setup/random.js';

const KILLS = ['kill-service', 'kill-postgres', 'kill-both'] as const;

export const KINDS = [
  ...KILLS,
  'freeze-service',
  'freeze-postgres',
  'cut-database',
  'reset-clients',
  'fill-disk',
  'jump-clock',
  'take-connections',
  'lock-table',
] as const;
export type Kind = (typeof KINDS)[number];

/** Of so many faults in a long run, one is not a kill. */
const FAULTS_PER_OTHER = 4;

export interface Plan {
  readonly kinds: readonly Kind[];
  readonly seed: number;
  /** Upper limit of the load between two faults. */
  readonly longestPauseMs: number;
}

export function isKill(kind: Kind): boolean {
  return (KILLS as readonly Kind[]).includes(kind);
}

/** @returns each kind once, in an order that the seed chooses */
export function shortPlan(kinds: readonly Kind[], seed: number): Plan {
  const random = generator(seed);
  const rest = [...kinds];
  const shuffled: Kind[] = [];
  while (rest.length > 0) shuffled.push(...rest.splice(random(rest.length), 1));
  return { kinds: shuffled, seed, longestPauseMs: 1000 };
}

/** @returns so many kills, with other faults among them */
export function longPlan(kinds: readonly Kind[], kills: number, seed: number): Plan {
  const random = generator(seed);
  const others = kinds.filter((kind) => !isKill(kind));
  const chosen: Kind[] = [];
  let left = kills;
  while (left > 0) {
    const isOther = others.length > 0 && random(FAULTS_PER_OTHER) === 0;
    if (!isOther) left--;
    const from = isOther ? others : KILLS;
    chosen.push(from[random(from.length)]!);
  }
  return { kinds: chosen, seed, longestPauseMs: 2000 };
}
