import { expect } from '@jest/globals';
import fc from 'fast-check';
import { printedSeed } from '../setup/model/random.js';

/** The runs of each property. */
export const RUNS = Number(process.env['PROPERTY_RUNS'] ?? 10);

/** Ends only runs that hang: the longest run takes a second on an idle machine. */
const RUN_LIMIT_MS = 30_000;

/** Enough for the runs on a busy machine, and for shrinking an input that failed. */
export const PROPERTY_TIMEOUT_MS = 120_000 + RUNS * 2000;

fc.configureGlobal({
  // Before the timeout of Jest, which would hide the seed and the input.
  interruptAfterTimeLimit: PROPERTY_TIMEOUT_MS - RUN_LIMIT_MS,
  markInterruptAsFailure: true,
  ...(process.env['PROPERTY_PATH'] !== undefined && { path: process.env['PROPERTY_PATH'] }),
});

/**
 * Checks a property with `runs` inputs, and prints the seed. A failure names the seed, and the smallest input that fails;
 * `PROPERTY_SEED` and `PROPERTY_PATH` repeat it.
 */
export async function forAll<Input>(
  input: fc.Arbitrary<Input>,
  holds: (input: Input) => Promise<void>,
  runs = RUNS,
): Promise<void> {
  const seed = printedSeed(`${expect.getState().currentTestName}: ${runs} runs`);
  await fc.assert(fc.asyncProperty(input, holds), {
    numRuns: runs,
    seed,
    timeout: RUN_LIMIT_MS,
  });
}
