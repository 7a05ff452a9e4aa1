import { expect, it } from '@jest/globals';
import { tableOf } from './table.js';

const ROWS = [
  ['name', 'count'],
  ['a', '1000000'],
  ['birch', '7'],
];

it('columns are as wide as their longest cell, and no line ends with spaces', () => {
  expect(tableOf(ROWS)).toBe(['name   count', 'a      1000000', 'birch  7'].join('\n'));
});
