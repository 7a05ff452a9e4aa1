import { describe, expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { hashOf, Shards } from './shards.js';

/** From `SELECT hashint8(…)`. */
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

describe('a thousand ids', () => {
  const database = new UnitDatabase();

  it('have the hash that Postgres gives them', async () => {
    const rows = await database.query<{ id: string; hash: number }>(
      `SELECT id::text AS id, hashint8(id) AS hash
       FROM (SELECT ('x' || left(md5(i::text), 16))::bit(64)::bigint FROM generate_series(1, 1000) AS i) AS ids (id)`,
    );
    expect(rows).toHaveLength(1000);
    expect(rows.map(({ id }) => hashOf(BigInt(id)))).toEqual(rows.map(({ hash }) => hash));
  });
});
