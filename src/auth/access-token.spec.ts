import { describe, expect, it, jest } from '@jest/globals';
import {
  generateAccessToken,
  hashAccessToken,
  isWellFormedAccessToken,
  mayContainAccessToken,
} from './access-token.js';

const BASE62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

describe('access tokens', () => {
  it('match the published pattern and have the right checksum', () => {
    for (let i = 0; i < 1000; i++) {
      const token = generateAccessToken();
      expect(token).toMatch(/^plantstore_[0-9A-Za-z]{49}$/);
      expect(isWellFormedAccessToken(token)).toBe(true);
    }
  });

  it('are well-formed if an earlier version made them', () => {
    const token = 'plantstore_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG07cCaD';
    expect(isWellFormedAccessToken(token)).toBe(true);
  });

  it('never repeat, also if Math.random does, whose numbers can be predicted', () => {
    const random = jest.spyOn(Math, 'random').mockReturnValue(0.5);
    const tokens = Array.from({ length: 1000 }, generateAccessToken);
    random.mockRestore();
    expect(new Set(tokens).size).toBe(tokens.length);
  });

  it('have 256 random bits', () => {
    const numbers = Array.from({ length: 200 }, () =>
      [...generateAccessToken().slice('plantstore_'.length, -6)].reduce(
        (number, digit) => number * 62n + BigInt(BASE62.indexOf(digit)),
        0n,
      ),
    );
    // A random bit is the same in all 200 numbers only once in 2 ** 199 times.
    const bitsThatAreEver = (value: '0' | '1') =>
      Array.from({ length: 256 }, (_, bit) =>
        numbers.some((number) => number.toString(2).padStart(256, '0')[bit] === value),
      );
    expect(bitsThatAreEver('0')).toEqual(Array(256).fill(true));
    expect(bitsThatAreEver('1')).toEqual(Array(256).fill(true));
  });

  it('are refused after any change of one character', () => {
    const token = generateAccessToken();
    for (let i = 0; i < token.length; i++) {
      const other = token[i] === 'A' ? 'B' : 'A';
      expect(isWellFormedAccessToken(token.slice(0, i) + other + token.slice(i + 1))).toBe(false);
    }
  });

  it.each(['', 'plantstore_', 'x'.repeat(60), 'plantstore_' + '0'.repeat(49)])(
    '%j is not one',
    (text) => {
      expect(isWellFormedAccessToken(text)).toBe(false);
    },
  );

  it('are stored as SHA-256', () => {
    expect(hashAccessToken('abc').toString('hex')).toBe(
      'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
    );
  });

  it.each([
    ['a token', generateAccessToken()],
    ['a token in a text', `Bearer ${generateAccessToken()}`],
    ['a part of a token', generateAccessToken().slice(0, 20)],
    ['a token in another case', generateAccessToken().toUpperCase()],
  ])('may be in a text that has %s', (_kind, text) => {
    expect(mayContainAccessToken(text)).toBe(true);
  });

  it.each(['', 'gardener', 'plantstore', 'plant_store_'])('cannot be in %j', (text) => {
    expect(mayContainAccessToken(text)).toBe(false);
  });
});
