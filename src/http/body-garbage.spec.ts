import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { countBodyBytes } from './body-garbage.js';

const MIB = 1_048_576;

const { gc } = globalThis;

let collections: unknown[];

// observability.e2e.ts sees the collections of V8. Here, their moment is exact.
beforeEach(() => {
  collections = [];
  globalThis.gc = ((options: unknown) => void collections.push(options)) as typeof gc;
  countBodyBytes(4 * MIB);
});
afterEach(() => {
  globalThis.gc = gc;
});

it('new objects are collected after each 4 MiB of bodies, and then after 4 MiB more', () => {
  const minor = { type: 'minor' };
  expect(collections).toEqual([minor]);
  countBodyBytes(4 * MIB - 1);
  expect(collections).toEqual([minor]);
  countBodyBytes(1);
  expect(collections).toEqual([minor, minor]);
  countBodyBytes(4 * MIB - 1);
  expect(collections).toEqual([minor, minor]);
});

it('V8 decides alone without the flag', () => {
  globalThis.gc = undefined;
  countBodyBytes(8 * MIB);
  expect(collections).toHaveLength(1);
});
