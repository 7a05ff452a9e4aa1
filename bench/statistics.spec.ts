import { describe, expect, it } from '@jest/globals';
import { LatencyRecorder, median } from './statistics.js';

describe('median', () => {
  it('takes the middle, whatever the order', () => {
    expect(median([10, 2, 9])).toBe(9);
  });

  it('takes the mean of the two in the middle', () => {
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });

  it('refuses an empty list', () => {
    expect(() => median([])).toThrow(RangeError);
  });
});

describe('LatencyRecorder', () => {
  it('keeps times below a millisecond', () => {
    const recorder = new LatencyRecorder();
    for (let count = 0; count < 98; count++) recorder.record(0.25);
    recorder.record(40);
    recorder.record(40);
    const { p50, p99, max } = recorder.summary();
    expect(p50).toBeCloseTo(0.25, 3);
    expect(p99).toBeCloseTo(40, 1);
    expect(max).toBeCloseTo(40, 1);
  });
});
