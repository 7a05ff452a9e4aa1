import { expect, it } from '@jest/globals';
import { parseInt64, toInt64OfNumber } from './int64.js';

const MIN = -9223372036854775808n;
const MAX = 9223372036854775807n;

it.each<[string, bigint]>([
  ['0', 0n],
  ['-0', 0n],
  ['-0.0', 0n],
  ['0e999999999999', 0n],
  ['0.000E-999999999999', 0n],
  ['0.000e999999999999', 0n],
  ['9223372036854775807', MAX],
  ['-9223372036854775808', MIN],
  ['9223372036854775807.000', MAX],
  ['-9223372036854775808.0', MIN],
  ['9.223372036854775807e18', MAX],
  ['-9.223372036854775808E+18', MIN],
  ['922337203685477580700e-2', MAX],
  ['0.00009223372036854775807e23', MAX],
  ['-0.00009223372036854775808e23', MIN],
  ['1e18', 10n ** 18n],
  ['1E2', 100n],
  ['1E+2', 100n],
  ['1e2', 100n],
  ['9007199254740993', 9007199254740993n],
  ['9007199254740993.000', 9007199254740993n],
  ['5.0', 5n],
  ['50.0', 50n],
  ['-12.5e1', -125n],
  ['12.5e1', 125n],
  ['-120.0e-1', -12n],
  ['5000e-3', 5n],
  ['100e-2', 1n],
  ['1e00002', 100n],
  ['0.0010e3', 1n],
])('%s is exactly the integer %s', (source, value) => {
  expect(toInt64OfNumber(source)).toBe(value);
});

it.each([
  ['1. and a thousand zeros', `1.${'0'.repeat(1000)}`],
  ['0. and a thousand zeros and 1e1001', `0.${'0'.repeat(1000)}1e1001`],
])('%s is exactly the integer 1', (_name, source) => {
  expect(toInt64OfNumber(source)).toBe(1n);
});

it.each([
  '9223372036854775808',
  '-9223372036854775809',
  '9223372036854775808.0',
  '-9.223372036854775809e18',
  '-922337203685477580.9e1',
  '10000000000000000000',
  '-10000000000000000000',
  '1e19',
  '-1e19',
  '1e400',
  '1e999999999999',
])('%s is out of range', (source) => {
  expect(toInt64OfNumber(source)).toBeUndefined();
});

it.each([
  '0.1',
  '-0.5',
  '1.5',
  '9007199254740993.5',
  '9223372036854775807.1',
  '1.0000000000000000000001',
  '1e-1',
  '10e-2',
  '12.5e0',
  '1e-999999999999',
])('%s is no integer, and is not rounded to one', (source) => {
  expect(toInt64OfNumber(source)).toBeUndefined();
});

it.each<[string, bigint]>([
  ['0', 0n],
  ['-0', 0n],
  ['5', 5n],
  ['-120', -120n],
  ['9007199254740993', 9007199254740993n],
  ['9223372036854775807', MAX],
  ['-9223372036854775808', MIN],
])('the text %s is the integer %s', (text, value) => {
  expect(parseInt64(text)).toBe(value);
});

it.each([
  '',
  '-',
  '--1',
  '+1',
  '007',
  '-01',
  ' 5',
  '5 ',
  '5\n',
  '0x10',
  '0b1',
  '1e3',
  '5.0',
  '1_000',
  '1n',
  '٣',
  'abc',
  '9223372036854775808',
  '-9223372036854775809',
])('the text %j is no int64', (text) => {
  expect(parseInt64(text)).toBeUndefined();
});

it('65,536 digits are out of range as a number, and no int64 as a text', () => {
  const digits = '9'.repeat(65_536);
  expect(toInt64OfNumber(digits)).toBeUndefined();
  expect(parseInt64(digits)).toBeUndefined();
});
