import type { DatabaseConfig } from '../config/config.js';
import { StartError } from '../errors/start-error.js';
import { withConnection } from './connection.js';
import { SERVER_PART } from './database-options.js';
import { limited } from './limited.js';
import { beginOf } from './session.js';
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
  const limits = { statement: 0, lock: Math.ceil(config.timeout * SERVER_PART) };
  return withConnection(config, limits, async (client) => {
    const run = async <Row extends object>(text: string, values: unknown[] = []) => {
      const { rows } = await client.query<Row>(limited(config.timeout, text, values));
      return rows;
    };
    const citus = await run(`SELECT 1 FROM pg_extension WHERE extname = 'citus'`);
    if (citus.length === 0) {
      throw new StartError(
        `The table ${table} was not distributed: the database has no extension citus. Install Citus, run CREATE EXTENSION citus in this database on every server, and add the workers with citus_add_node.`,
      );
    }
    const [workers] = await run<{ count: number }>(
      'SELECT count(*)::int AS count FROM citus_get_active_worker_nodes()',
    );
    if (workers!.count === 0) {
      throw new StartError(
        `The table ${table} was not distributed: Citus has no workers. Add them with citus_add_node.`,
      );
    }
    const wasDistributed = (await run(FIND_TABLE, [table])).length > 0;
    if (!wasDistributed) {
      await run(beginOf(client));
      // Not `run`: moving many rows takes long.
      await client.query(`SELECT create_distributed_table($1, 'id')`, [table]);
      // Without this, the rows that were moved also stay on the disk of this server.
      await client.query('SELECT truncate_local_data_after_distributing_table($1)', [table]);
      await run('COMMIT');
    }
    const [counts] = await run<Omit<Distribution, 'wasDistributed'>>(COUNT, [table]);
    return { ...counts!, wasDistributed };
  });
}
