import { expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { findShards } from './shards.js';

const database = new UnitDatabase();

/** The lists of Citus, in which a table has shards from the hashes of 0, 1 and -1 on. */
const distribute = (method: string) =>
  database.query(
    `CREATE TABLE plants (id bigint); CREATE TABLE trees (id bigint);
     CREATE TABLE pg_dist_partition AS SELECT 'plants'::regclass AS logicalrelid, '${method}' AS partmethod;
     CREATE TABLE pg_dist_shard AS
       SELECT 'plants'::regclass AS logicalrelid, hashint8(id)::text AS shardminvalue
       FROM (VALUES (0), (-1), (1)) AS ids (id)
       UNION ALL SELECT 'trees'::regclass, '7'`,
  );

it('a table that Citus distributes by a hash has its shards, by their least hash', async () => {
  await distribute('h');
  const shards = await findShards(await database.open(), 'plants');
  expect(shards!.count).toBe(3);
  expect([1n, 0n, -1n].map((id) => shards!.indexOf(id))).toEqual([0, 1, 2]);
});

it.each([
  ['a table that Citus copies to all servers', 'n', 'plants'],
  ['a table that Citus does not distribute', 'h', 'trees'],
])('%s has none', async (_what, method, table) => {
  await distribute(method);
  expect(await findShards(await database.open(), table)).toBeUndefined();
});

it('a table has none in a database without Citus, and the server logs no error', async () => {
  const dataSource = await database.open();
  expect(await findShards(dataSource, 'plants')).toBeUndefined();
});
