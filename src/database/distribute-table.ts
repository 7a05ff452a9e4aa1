import { DataSource } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { databaseOptions } from './database-options.js';
import { FIND_TABLE } from './shards.js';

/** Where the rows of a distributed table are. */
export interface Distribution {
  readonly shards: number;
  readonly servers: number;
  /** Whether the table was distributed already, so that nothing was changed. */
  readonly wasDistributed: boolean;
}

const COUNT = `
  SELECT count(DISTINCT shardid)::int AS shards, count(DISTINCT (nodename, nodeport))::int AS servers
  FROM pg_dist_shard JOIN pg_dist_shard_placement USING (shardid)
  WHERE logicalrelid = $1::regclass`;

/**
 * Distributes the rows of a table over the workers of Citus, by their id. Rows that the table has already are moved;
 * writes wait meanwhile.
 *
 * @throws StartError when the database has no Citus, or Citus has no workers; or the error of the database
 */
export async function distributeTable(
  config: DatabaseConfig,
  table: string,
): Promise<Distribution> {
  const dataSource = await new DataSource(databaseOptions(config)).initialize();
  try {
    const citus = await dataSource.query<unknown[]>(
      `SELECT 1 FROM pg_extension WHERE extname = 'citus'`,
    );
    if (citus.length === 0) {
      throw new StartError(
        `The table ${table} was not distributed: the database has no extension citus. Install Citus, run CREATE EXTENSION citus in this database on every server, and add the workers with citus_add_node.`,
      );
    }
    const [workers] = await dataSource.query<{ count: number }[]>(
      'SELECT count(*)::int AS count FROM citus_get_active_worker_nodes()',
    );
    if (workers!.count === 0) {
      throw new StartError(
        `The table ${table} was not distributed: Citus has no workers. Add them with citus_add_node.`,
      );
    }
    const wasDistributed = (await dataSource.query<unknown[]>(FIND_TABLE, [table])).length > 0;
    if (!wasDistributed) {
      await dataSource.transaction(async (manager) => {
        // Moving many rows takes longer than the limit that the role may have.
        await manager.query('SET LOCAL statement_timeout = 0');
        await manager.query(`SELECT create_distributed_table($1, 'id')`, [table]);
        // Without this, the rows that were moved also stay on the disk of this server.
        await manager.query('SELECT truncate_local_data_after_distributing_table($1)', [table]);
      });
    }
    const [counts] = await dataSource.query<Omit<Distribution, 'wasDistributed'>[]>(COUNT, [table]);
    return { ...counts!, wasDistributed };
  } finally {
    await dataSource.destroy();
  }
}
