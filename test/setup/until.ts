import { setTimeout as delay } from 'node:timers/promises';

const PAUSE_MS = 5;

/** Waits for what no event tells. The time limit of the test is the only end of it. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  // Without a reference, the loop of a test that failed does not keep the process alive.
  while (!(await condition())) await delay(PAUSE_MS, undefined, { ref: false });
}
