import { describe, expect, it } from '@jest/globals';
import { contradictions } from './history.js';

describe('a history', () => {
  const plant = { id: 1, name: 'a', tag: 't' };
  const row = { id: '1', name: 'a', tag: 't' };

  it.each([
    ['an acknowledged plant is stored', 200, [row], true],
    ['an acknowledged plant is not stored', 200, [], false],
    ['an acknowledged plant is stored with another tag', 200, [{ ...row, tag: null }], false],
    ['a refused plant has another in its place', 40006, [{ ...row, name: 'b' }], false],
    ['a plant is refused, and its id is free', 40006, [], false],
    ['a plant is refused, and stored', 40006, [row], false],
    ['an invalid plant is stored', 40005, [row], false],
    ['a plant without a response is stored', 0, [row], true],
    ['a plant without a response is not stored', 0, [], true],
    ['a plant is stored although the database was away', 50300, [row], true],
  ])('in which %s', (_case, outcome, rows, isExplained) => {
    const problems = contradictions([{ ...plant, outcome }], rows);
    expect(problems.length === 0).toBe(isExplained);
  });

  it('in which two plants race is explained by the row of the winner', () => {
    const loser = { ...plant, name: 'b', outcome: 40006 };
    expect(contradictions([{ ...plant, outcome: 200 }, loser], [row])).toEqual([]);
  });
});
