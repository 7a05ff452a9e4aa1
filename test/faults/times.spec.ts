import { describe, expect, it } from '@jest/globals';
import { longestGap } from './times.js';

describe('the longest gap', () => {
  it('begins at the fault, and ends with the first acknowledgment after it', () => {
    expect(longestGap([1, 2, 10, 11], 3, 20)).toBe(9);
    expect(longestGap([1, 2, 10, 11], 3, 11)).toBe(7);
  });

  it('is the whole time without any acknowledgment', () => {
    expect(longestGap([1, 30], 3, 20)).toBe(17);
  });
});
