import { describe, expect, it } from '@jest/globals';
import { BackOff } from './back-off.js';

describe('BackOff', () => {
  it('doubles the delay each time, up to half a minute', () => {
    const backOff = new BackOff();
    const delays = Array.from({ length: 11 }, () => backOff.next(1000));
    expect(delays).toEqual([100, 200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
  });

  it('starts again with the shortest delay after a worker ran for a minute, but not for less', () => {
    const backOff = new BackOff();
    expect([0, 0, 59_999, 60_000, 0].map((lifetime) => backOff.next(lifetime))).toEqual([
      100, 200, 400, 100, 200,
    ]);
  });

  it('stays at half a minute, however often workers end', () => {
    const backOff = new BackOff();
    const delays = Array.from({ length: 5000 }, () => backOff.next(0));
    expect(delays.at(-1)).toBe(30_000);
  });
});
