import { startCitusCluster } from '../test/setup/database/citus-cluster.js';
import { connectTo, durableSettings, openDatabase, type BenchServer } from './postgres.js';

const WORKERS = 2;

/**
 * Starts a coordinator and two workers. All contenders share one database, because each database of Citus needs its
 * extension and its workers.
 *
 * @throws Error when the cluster does not start
 */
export async function openShards(): Promise<BenchServer> {
  const cluster = await startCitusCluster(WORKERS, durableSettings(WORKERS + 1));
  try {
    const server = await connectTo(cluster.url, () => cluster.close());
    const database = { ...openDatabase(cluster.url), drop: () => Promise.resolve() };
    return { ...server, createDatabase: () => Promise.resolve(database) };
  } catch (error) {
    await cluster.close();
    throw error;
  }
}
