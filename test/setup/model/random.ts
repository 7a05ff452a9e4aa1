/** Takes the seed in `PROPERTY_SEED`, or a new one, and prints it, so that a run can be repeated. */
export function printedSeed(run: string): number {
  // fast-check names seeds as signed integers of 32 bits.
  const seed = Number(process.env['PROPERTY_SEED'] ?? Date.now()) | 0;
  console.info(`${run}, seed ${seed}`);
  return seed;
}

/**
 * A linear congruential generator (Numerical Recipes), with a seed, so that a failure can be repeated.
 *
 * @returns a function that returns a whole number from 0, less than `below`
 */
export function generator(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}
