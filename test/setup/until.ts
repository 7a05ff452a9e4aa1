import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 5;

/** Waits for a condition that no event reports, until the time limit of the test. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  // Without a reference, the loop of a test that failed does not keep the process alive.
  while (!(await condition())) await delay(PAUSE_MS, undefined, { ref: false });
}
