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

/** The kinds of the collections that an action forces. */
async function collectionsDuring(action: () => void): Promise<(number | undefined)[]> {
  const kinds: (number | undefined)[] = [];
  const observer = new PerformanceObserver((list) => {
    for (const { detail } of list.getEntries() as { detail?: NodeGCPerformanceDetail }[]) {
      if (detail?.flags === constants.NODE_PERFORMANCE_GC_FLAGS_FORCED) kinds.push(detail.kind);
    }
  });
  observer.observe({ entryTypes: ['gc'] });
  action();
  await chainsSettled();
  observer.disconnect();
  return kinds;
}

it('new objects are collected after each 4 MiB of bodies, and then after 4 MiB more', async () => {
  countBodyBytes(4 * MIB);
  expect(await collectionsDuring(() => countBodyBytes(4 * MIB - 1))).toEqual([]);
  expect(await collectionsDuring(() => countBodyBytes(1))).toEqual([
    constants.NODE_PERFORMANCE_GC_MINOR,
  ]);
  expect(await collectionsDuring(() => countBodyBytes(4 * MIB - 1))).toEqual([]);
});

it('V8 decides alone without the flag', async () => {
  globalThis.gc = undefined;
  expect(await collectionsDuring(() => countBodyBytes(8 * MIB))).toEqual([]);
});
