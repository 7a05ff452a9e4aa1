// How many plants are sent to the database together.

import type { AppConfig } from '../config/config.js';
import type { BatchLimits } from '../database/batcher.js';
import type { Shards } from '../database/shards.js';
import type { NewPlant } from './dto/plant.js';

/** The name under which the shards of the plants are injected; undefined if all plants are in one table. */
export const SHARDS = Symbol('shards');

const BATCH_SIZE = 256;

/** Each number of plants is a prepared statement of its own on each connection, so it is small. */
const BATCH_SIZE_OF_SHARD = 32;

/**
 * At least 16 of the largest plants fit into it with the default `BODY_LIMIT`. A statement of all plants that a batch may have
 * by their number would take too much memory, in the database, too, and with a large `BODY_LIMIT` too much time.
 */
const BATCH_CHARACTERS = 2 ** 20;

/**
 * A batch of any plants would need nearly all shards of a distributed table, and a commit in two phases, so the plants of a
 * batch are then in one shard.
 */
export function batchLimits(
  { database, http }: AppConfig,
  shards: Shards | undefined,
): BatchLimits<NewPlant> {
  const { batchSize, batchesInFlight, poolSize, timeout } = database;
  const common = {
    characters: BATCH_CHARACTERS,
    queued: http.maxPendingRequests,
    wait: timeout,
  };
  if (shards === undefined) {
    return { ...common, size: batchSize ?? BATCH_SIZE, inFlight: batchesInFlight ?? 1 };
  }
  return {
    ...common,
    size: Math.min(batchSize ?? Infinity, BATCH_SIZE_OF_SHARD),
    // One connection is left for tokens and readiness.
    inFlight: batchesInFlight ?? Math.max(1, poolSize - 1),
    groupOf: ({ id }) => shards.indexOf(id),
  };
}
