import { expect, it } from '@jest/globals';
import { contradictions } from './contradictions.js';

const ID = '9007199254740993';
const row = (name: string, tag?: string) => ({ id: ID, name, ...(tag !== undefined && { tag }) });
const sent = (name: string, outcome: number) => ({ id: ID, name, outcome });

it.each([
  ['an acknowledged plant, and another one that lost', [sent('a', 200), sent('b', 40006)]],
  ['a plant without a response', [sent('a', 0)]],
  ['a plant that the database may have stored', [sent('a', 50300)]],
  ['a plant whose token was wrong at first', [sent('a', 40101), sent('a', 0)]],
])('a row is explained by %s', (_kind, history) => {
  expect(contradictions(history, [row('a')])).toEqual([]);
});

it.each([0, 50300])('no row is explained by the outcome %d', (outcome) => {
  expect(contradictions([sent('a', outcome)], [])).toEqual([]);
});

it.each([
  ['an acknowledged plant has no row', [sent('a', 200)], []],
  ['two plants won', [sent('a', 200), sent('b', 200)], [row('a')]],
  ['a plant lost against nothing', [sent('a', 40006)], []],
  ['a plant lost against itself', [sent('a', 40006), sent('a', 0)], [row('a')]],
  ['only a refused plant has the row', [sent('a', 40005)], [row('a')]],
  ['nobody sent the row', [], [row('a')]],
])('a contradiction is named if %s', (_kind, history, rows) => {
  expect(contradictions(history, rows)).toHaveLength(1);
});

it.each([
  ['its name', row('b')],
  ['its tag', row('a', '')],
  ['the last digit of its id', { ...row('a'), id: '9007199254740992' }],
])('a row that differs in %s is not that of the plant', (_field, other) => {
  expect(contradictions([sent('a', 200)], [other])).toContain(`${ID}: 200, but not stored`);
});
