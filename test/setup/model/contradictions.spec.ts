import { describe, expect, it } from '@jest/globals';
import { contradictions } from './contradictions.js';

const row = (name: string, tag?: string) => ({
  id: '9007199254740993',
  name,
  ...(tag !== undefined && { tag }),
});
const sent = (name: string, outcome: number, tag?: string) => ({
  id: '9007199254740993',
  name,
  outcome,
  ...(tag !== undefined && { tag }),
});

describe('a history agrees with', () => {
  it('the row of an acknowledged plant, and of the others that lost against it', () => {
    expect(contradictions([sent('a', 200), sent('b', 40006)], [row('a')])).toEqual([]);
  });

  it.each([0, 50300])('a row or none after outcome %s', (outcome) => {
    expect(contradictions([sent('a', outcome)], [])).toEqual([]);
    expect(contradictions([sent('a', outcome)], [row('a')])).toEqual([]);
  });

  it('a plant that was refused for a wrong token, and stored later', () => {
    expect(contradictions([sent('a', 40101), sent('a', 0)], [row('a')])).toEqual([]);
  });
});

describe('a history contradicts', () => {
  it('a row that is missing', () => {
    expect(contradictions([sent('a', 200)], [])).toHaveLength(1);
  });

  it('a row that differs in its name, its tag or the last digit of its id', () => {
    const rows = [row('b'), row('a', ''), { ...row('a'), id: '9007199254740992' }];
    for (const other of rows) {
      expect(contradictions([sent('a', 200)], [other])).toContain(
        '9007199254740993: 200, but not stored',
      );
    }
  });

  it('two winners', () => {
    expect(contradictions([sent('a', 200), sent('b', 200)], [row('a')])).toHaveLength(1);
  });

  it('a plant that lost against nothing, or against itself', () => {
    expect(contradictions([sent('a', 40006)], [])).toHaveLength(1);
    expect(contradictions([sent('a', 40006), sent('a', 0)], [row('a')])).toHaveLength(1);
  });

  it.each([40005, 40101])('a row after outcome %s alone', (outcome) => {
    expect(contradictions([sent('a', outcome)], [row('a')])).toHaveLength(1);
  });

  it('a row that nobody sent', () => {
    expect(contradictions([], [row('a')])).toHaveLength(1);
  });
});
