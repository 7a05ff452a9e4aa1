// Finds the server of a plant on Citus, which distributes the rows of a table over several servers.

import type { DataSource } from 'typeorm';
import { prepared, runStatement } from './run-statement.js';

/** The list of distributed tables is a part of the extension Citus. */
const FIND_CITUS = prepared(`SELECT to_regclass('pg_dist_partition') IS NOT NULL AS "isThere"`);

const FIND_SHARDS = prepared(`
  SELECT shardminvalue::int AS min FROM pg_dist_shard JOIN pg_dist_partition USING (logicalrelid)
  WHERE logicalrelid = to_regclass($1) AND partmethod = 'h' ORDER BY min`);

/** The shards of a table that Citus distributes by a hash of a bigint. */
export class Shards {
  /** @param minima the least hash of each shard, ascending */
  constructor(private readonly minima: readonly number[]) {}

  get count(): number {
    return this.minima.length;
  }

  /** @returns the position of the shard that has the row */
  indexOf(id: bigint): number {
    const hash = hashOf(id);
    return this.minima.findLastIndex((min) => min <= hash);
  }
}

/**
 * @returns the shards over which Citus distributes the rows of a table; undefined if the table is not distributed by hash
 * @throws ServiceError databaseUnavailable when the database cannot be reached or does not respond in time
 */
export async function findShards(
  dataSource: DataSource,
  table: string,
): Promise<Shards | undefined> {
  // A statement that reads a missing table would fail, and the server would log an error.
  const citus = await runStatement<{ isThere: boolean }>(dataSource, FIND_CITUS, []);
  if (citus.rows[0]?.isThere !== true) return undefined;
  const { rows } = await runStatement<{ min: number }>(dataSource, FIND_SHARDS, [table]);
  return rows.length === 0 ? undefined : new Shards(rows.map(({ min }) => min));
}

/** The function hashint8 of Postgres, by which Citus chooses the shard. */
export function hashOf(id: bigint): number {
  const low = Number(BigInt.asIntN(32, id));
  const high = Number(BigInt.asIntN(32, id >> 32n));
  // The hash of Bob Jenkins (lookup3), for one word.
  let a = 0x9e3779b9 + 4 + 3923095;
  let b = a;
  let c = a;
  a += low ^ (id >= 0n ? high : ~high);
  c = (c ^ b) - rotate(b, 14);
  a = (a ^ c) - rotate(c, 11);
  b = (b ^ a) - rotate(a, 25);
  c = (c ^ b) - rotate(b, 16);
  a = (a ^ c) - rotate(c, 4);
  b = (b ^ a) - rotate(a, 14);
  c = (c ^ b) - rotate(b, 24);
  return c | 0;
}

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}
