import { uniformInt } from 'pure-rand/distribution/uniformInt';
import { xoroshiro128plus } from 'pure-rand/generator/xoroshiro128plus';

/** Takes the seed in `PROPERTY_SEED`, or a new one, and prints it, so that a run can be repeated. */
export function printedSeed(run: string): number {
  // fast-check names seeds as signed integers of 32 bits.
  const seed = Number(process.env['PROPERTY_SEED'] ?? Date.now()) | 0;
  console.info(`${run}, seed ${seed}`);
  return seed;
}

/**
 * @param seed with which a failure can be repeated
 * @returns a function that returns a random whole number from 0, less than `below`
 */
export function generator(seed: number): (below: number) => number {
  const random = xoroshiro128plus(seed);
  return (below) => uniformInt(random, 0, below - 1);
}
