import { describe, expect, it } from '@jest/globals';
import { isKill, KINDS, longPlan, shortPlan } from './plan.js';

describe('the short form', () => {
  it('has each fault once', () => {
    expect(shortPlan(KINDS, 7).toSorted()).toEqual(KINDS.toSorted());
  });

  it('is the same for the same seed', () => {
    expect(shortPlan(KINDS, 7)).toEqual(shortPlan(KINDS, 7));
    expect(shortPlan(KINDS, 7)).not.toEqual(shortPlan(KINDS, 8));
  });
});

describe('a form with 1000 kills', () => {
  const kinds = longPlan(KINDS, 1000, 7);

  it('has 1000 kills, and every other fault', () => {
    expect(kinds.filter(isKill)).toHaveLength(1000);
    expect(new Set(kinds)).toEqual(new Set(KINDS));
  });

  it('leaves out what this machine does not allow', () => {
    const allowed = KINDS.filter((kind) => kind !== 'fill-disk');
    expect(new Set(longPlan(allowed, 1000, 7))).toEqual(new Set(allowed));
  });
});
