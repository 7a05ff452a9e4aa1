import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, jest } from '@jest/globals';

/** lru-cache reads the clock at most once in this time, measured by a timer. */
const LRU_RESOLUTION_MS = 1;

/**
 * Stops the clocks of this process for the tests of a `describe` block. Timers run as always.
 *
 * @returns a function that sets the clocks ahead, by milliseconds
 */
export function holdClock(): (milliseconds: number) => Promise<void> {
  let ahead = 0;
  beforeAll(() => {
    const date = Date.now();
    // Whole milliseconds, so that sums are exact.
    const uptime = Math.ceil(performance.now());
    jest.spyOn(Date, 'now').mockImplementation(() => date + ahead);
    jest.spyOn(performance, 'now').mockImplementation(() => uptime + ahead);
  });
  afterAll(() => {
    jest.restoreAllMocks();
  });
  return async (milliseconds) => {
    ahead += milliseconds;
    await delay(2 * LRU_RESOLUTION_MS);
  };
}
