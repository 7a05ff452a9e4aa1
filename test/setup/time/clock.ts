import { afterAll, afterEach, beforeAll, jest } from '@jest/globals';

/** Not imported: Jest would keep these functions, and a later import would not get those of `importWithWaits`. */
const { setTimeout: delay } = process.getBuiltinModule('node:timers/promises');

/** lru-cache reads the clock at most once in this time, measured by a timer. */
const LRU_RESOLUTION_MS = 1;

export interface HeldClock {
  /** Sets both clocks ahead, by milliseconds: time passes. */
  (milliseconds: number): Promise<void>;
  /** Sets the date alone, by milliseconds, until the end of the test: as an administrator or a time server does. */
  changeDate(milliseconds: number): Promise<void>;
}

/**
 * Stops the clocks of this process for the tests of a `describe` block: for code that compares times. Timers and waits run as
 * always.
 */
export function holdClock(): HeldClock {
  let ahead = 0;
  let change = 0;
  // lru-cache would use the time that it read before.
  const reread = () => delay(2 * LRU_RESOLUTION_MS);
  beforeAll(() => {
    const date = Date.now();
    // Whole milliseconds, so that sums are exact.
    const uptime = Math.ceil(performance.now());
    jest.spyOn(Date, 'now').mockImplementation(() => date + ahead + change);
    jest.spyOn(performance, 'now').mockImplementation(() => uptime + ahead);
  });
  afterEach(() => {
    change = 0;
  });
  afterAll(() => {
    jest.restoreAllMocks();
  });
  const advance = (milliseconds: number) => {
    ahead += milliseconds;
    return reread();
  };
  const changeDate = (milliseconds: number) => {
    change += milliseconds;
    return reread();
  };
  return Object.assign(advance, { changeDate });
}
