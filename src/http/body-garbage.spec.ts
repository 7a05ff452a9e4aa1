import { beforeEach, expect, it } from '@jest/globals';
import { holdCollections } from '../../test/http/held-collections.js';
import { countBodyBytes } from './body-garbage.js';

const MIB = 1_048_576;

const hold = holdCollections();

let collections: readonly unknown[];

// observability.e2e.ts sees the collections of V8. Here, their moment is exact.
beforeEach(() => {
  collections = hold();
  countBodyBytes(4 * MIB);
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
