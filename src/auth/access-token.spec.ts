import { expect, it, jest } from '@jest/globals';
import { generateAccessToken } from './access-token.js';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

it('an access token has 256 random bits, none of them from Math.random, whose numbers can be predicted', () => {
  const random = jest.spyOn(Math, 'random').mockReturnValue(0.5);
  const numbers = Array.from({ length: 200 }, () =>
    [...generateAccessToken().slice('plantstore_'.length, -6)].reduce(
      (number, digit) => number * 62n + BigInt(BASE62.indexOf(digit)),
      0n,
    ),
  );
  random.mockRestore();
  // A random bit is the same in all 200 numbers only once in 2 ** 199 times.
  const bitsThatAreEver = (value: '0' | '1') =>
    Array.from({ length: 256 }, (_, bit) =>
      numbers.some((number) => number.toString(2).padStart(256, '0')[bit] === value),
    );
  expect(bitsThatAreEver('0')).toEqual(Array(256).fill(true));
  expect(bitsThatAreEver('1')).toEqual(Array(256).fill(true));
});
