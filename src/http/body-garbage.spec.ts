import { constants, PerformanceObserver, type NodeGCPerformanceDetail } from 'node:perf_hooks';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { chainsSettled } from '../../test/setup/time/settled.js';
import { countBodyBytes } from './body-garbage.js';

const MIB = 1_048_576;

const { gc } = globalThis;

beforeEach(() => {
  setFlagsFromString('--expose-gc');
  globalThis.gc = runInNewContext('gc') as typeof gc;
});
afterEach(() => {
  globalThis.gc = gc;
});

/** How many collections an action forces. V8 decides which are full ones: in a large heap, a minor one may become that. */
async function collectionsDuring(action: () => void): Promise<number> {
  let collections = 0;
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as { detail?: NodeGCPerformanceDetail }[]) {
      if (detail?.flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) collections++;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  action();
  await chainsSettled();
  observer.disconnect();
  return collections;
}

it('new objects are collected after each 4 MiB of bodies, and then after 4 MiB more', async () => {
  countBodyBytes(4 * MIB);
  expect(await collectionsDuring(() => countBodyBytes(4 * MIB - 1))).toBe(0);
  expect(await collectionsDuring(() => countBodyBytes(1))).toBe(1);
  expect(await collectionsDuring(() => countBodyBytes(4 * MIB - 1))).toBe(0);
});

it('V8 decides alone without the flag', async () => {
  globalThis.gc = undefined;
  expect(await collectionsDuring(() => countBodyBytes(8 * MIB))).toBe(0);
});
