import { expect, it } from '@jest/globals';
import { parseInt64, toInt64OfNumber } from './int64.js';

const MIN = -9223372036854775808n;
const MAX = 9223372036854775807n;

it.each<[string, bigint]>([
  ['-0', 0n],
  ['0.000E-999999999999', 0n],
  ['9223372036854775807', MAX],
  ['-9223372036854775808', MIN],
  ['9223372036854775807.000', MAX],
  ['9.223372036854775807e18', MAX],
  ['-9.223372036854775808E+18', MIN],
  ['922337203685477580700e-2', MAX],
  ['-0.00009223372036854775808e23', MIN],
  ['1e18', 10n ** 18n],
  ['9007199254740993', 9007199254740993n],
  ['50.0', 50n],
  ['-12.5e1', -125n],
  ['-120.0e-1', -12n],
  ['1e00002', 100n],
  ['0.0010e3', 1n],
])('%s is exactly the integer %s', (source, value) => {
  expect(toInt64OfNumber(source)).toBe(value);
});

it('a thousand zeros before the digits, and after them, do not change an integer', () => {
  const zeros = '0'.repeat(1000);
  expect(toInt64OfNumber(`1.${zeros}`)).toBe(1n);
  expect(toInt64OfNumber(`0.${zeros}1e1001`)).toBe(1n);
});

it.each([
  '9223372036854775808',
  '-9223372036854775809',
  '9223372036854775808.0',
  '-9.223372036854775809e18',
  '10000000000000000000',
  '1e19',
  '1e999999999999',
  '9'.repeat(65_536),
])('%.30s is out of range', (source) => {
  expect(toInt64OfNumber(source)).toBeUndefined();
});

it.each([
  '0.1',
  '-0.5',
  '9007199254740993.5',
  '9223372036854775807.1',
  '1.0000000000000000000001',
  '10e-2',
  '1e-999999999999',
])('%s is no integer, and is not rounded to one', (source) => {
  expect(toInt64OfNumber(source)).toBeUndefined();
});

it.each<[string, bigint]>([
  ['0', 0n],
  ['-120', -120n],
  ['9223372036854775807', MAX],
  ['-9223372036854775808', MIN],
])('the text %s is the integer %s', (text, value) => {
  expect(parseInt64(text)).toBe(value);
});

it.each([
  ['is empty', ''],
  ['has no digits', '-'],
  ['has a plus', '+1'],
  ['has a leading zero', '-01'],
  ['has a space', ' 5'],
  ['has a line feed', '5\n'],
  ['is hexadecimal', '0x10'],
  ['has an exponent', '1e3'],
  ['has a fraction', '5.0'],
  ['has a digit beyond ASCII', '٣'],
  ['is out of range', '9223372036854775808'],
])('a text is no int64 if it %s', (_reason, text) => {
  expect(parseInt64(text)).toBeUndefined();
});
