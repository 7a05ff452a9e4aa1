import { expect } from '@jest/globals';
import fc from 'fast-check';
import { printedSeed } from '../setup/model/random.js';

/** The runs of each property. */
export const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 10);

/**
 * Ends only a property that hangs: it takes seconds on an idle machine. A single run has no limit, because it would go on after
 * it, on the same service as the next one.
 */
const LIMIT_MS = 600_000 + RUNS * 2000;

/** Later than fast-check's limit, because it would hide the seed. */
export const PROPERTY_TIMEOUT_MS = LIMIT_MS + 60_000;

fc.configureGlobal({
  interruptAfterTimeLimit: LIMIT_MS,
  markInterruptAsFailure: true,
  ...(process.env['PROPERTY_PATH'] !== undefined && { path: process.env['PROPERTY_PATH'] }),
});

/**
 * Checks a property with `runs` inputs, and prints the seed. A failure names the seed, and the smallest input that fails;
 * `PROPERTY_SEED` and `PROPERTY_PATH` repeat it. One that hangs names the seed, and how many inputs had passed.
 */
export async function forAll<Input>(
  input: fc.Arbitrary<Input>,
  holds: (input: Input) => Promise<void>,
  runs = RUNS,
): Promise<void> {
  const seed = printedSeed(`${expect.getState().currentTestName}: ${runs} runs`);
  await fc.assert(fc.asyncProperty(input, holds), { numRuns: runs, seed });
}
