import { afterEach, beforeEach } from '@jest/globals';
import { pino } from 'pino';
import { BatchLimitsService } from '../../src/plants/batch-limits.service.js';
import type { PlantsDatabase } from './plants-database.js';

/** Services that choose the limits of batches on a database, and what they log. */
export interface BatchLimitsServices {
  readonly entries: readonly { level: number; msg: string; err?: { code: number } }[];
  readonly messages: () => string[];
  readonly create: (env?: Record<string, string>) => BatchLimitsService;
  /** Makes a service that has looked at the database. */
  readonly start: (env?: Record<string, string>) => Promise<BatchLimitsService>;
  /** Makes the tables in which Citus lists that the plants are distributed over four shards. */
  readonly distribute: () => Promise<unknown>;
  readonly undistribute: () => Promise<unknown>;
}

/** The least hash of each shard. */
const MINIMA = [-2_147_483_648, -1_073_741_824, 0, 1_073_741_824];

/** Stops the services after each test of a `describe` block. */
export function useBatchLimits(database: PlantsDatabase): BatchLimitsServices {
  let entries: BatchLimitsServices['entries'][number][];
  let services: BatchLimitsService[];

  beforeEach(() => {
    entries = [];
    services = [];
  });
  afterEach(() => services.forEach((service) => service.onModuleDestroy()));

  const create = (env: Record<string, string> = {}): BatchLimitsService => {
    const write = (line: string) => void entries.push(JSON.parse(line) as (typeof entries)[0]);
    const { plants, configure } = database;
    const service = new BatchLimitsService(plants, configure(env), pino({}, { write }));
    services.push(service);
    return service;
  };
  return {
    get entries() {
      return entries;
    },
    messages: () => entries.map(({ msg }) => msg),
    create,
    async start(env) {
      const service = create(env);
      await service.onApplicationBootstrap();
      return service;
    },
    distribute: () =>
      database.query(`
        CREATE TABLE pg_dist_partition AS
        SELECT 'plants'::regclass AS logicalrelid, 'h' AS partmethod;
        CREATE TABLE pg_dist_shard AS
        SELECT 'plants'::regclass AS logicalrelid, min::text AS shardminvalue
        FROM unnest(ARRAY[${MINIMA.join(', ')}]) AS min`),
    undistribute: () => database.query('DROP TABLE pg_dist_partition, pg_dist_shard'),
  };
}
