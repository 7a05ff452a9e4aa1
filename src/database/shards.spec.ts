import { describe, expect, it } from '@jest/globals';
import { hashOf, Shards } from './shards.js';

/** From `SELECT hashint8(…)`; test/create/distributed-plants.e2e.ts compares more of them. */
const HASHES: [bigint, number][] = [
  [0n, -272711505],
  [1n, -1905060026],
  [-1n, 385747274],
  [9223372036854775807n, -1524351049],
  [-9223372036854775808n, -96758253],
  [1649503004888048n, 52835236],
];

describe('Shards', () => {
  it.each(HASHES)('hashes %d like Postgres', (id, hash) => {
    expect(hashOf(id)).toBe(hash);
  });

  it('finds the shard whose range has the hash, bounds included', () => {
    const shards = new Shards([-(2 ** 31), -272711505, 385747274]);
    expect([1n, 0n, 1649503004888048n, -1n].map((id) => shards.indexOf(id))).toEqual([0, 1, 1, 2]);
  });
});
