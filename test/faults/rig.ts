import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { startDatabaseProxy, type DatabaseProxy } from '../setup/database/database-proxy.js';
import {
  disturb,
  startPostgresServer,
  type PostgresServer,
} from '../setup/database/postgres-server.js';
import { waitFor } from '../setup/service/program.js';
import type { Kind } from './plan.js';

/** A Postgres that is disturbed. */
export interface FaultServer extends Pick<
  PostgresServer,
  'url' | 'query' | 'administer' | 'kill' | 'freeze' | 'thaw'
> {
  /** Whether the service starts it again when it has ended. */
  readonly restartsItself: boolean;
  /** Starts it again; does nothing if the service does so. */
  start(): Promise<void>;
}

/** A Postgres, and the service's way to it. */
export interface Rig {
  readonly server: FaultServer;
  readonly proxy: DatabaseProxy | undefined;
  /** The settings of the service. */
  readonly env: Readonly<Record<string, string>>;
  /** The faults that cannot be caused here, and the reason. */
  readonly leftOut: { readonly kinds: readonly Kind[]; readonly reason?: string };
}

/**
 * @param folder gets the logs
 * @param disk the folder for the data
 * @param resources gets all that must be released
 */
export type OpenRig = (
  folder: string,
  disk: string,
  resources: AsyncDisposableStack,
) => Promise<Rig>;

/** Few connections, so that they can be taken; a small log, which fits a small disk. */
const SETTINGS = { max_connections: '40', max_wal_size: '64MB', min_wal_size: '32MB' };

/** @param settings of Postgres that differ from the defaults */
export const openServerRig =
  (settings: Readonly<Record<string, string>>): OpenRig =>
  async (folder, disk, resources) => {
    const server = await startPostgresServer({
      settings: { ...SETTINGS, ...settings },
      parent: disk,
    });
    resources.defer(async () => {
      await copyFile(server.logFile, join(folder, 'postgres.log'));
      await server.close();
    });
    const proxy = await startDatabaseProxy(server.url);
    resources.defer(() => proxy.close());
    return {
      server: { ...server, restartsItself: false },
      proxy,
      env: { DATABASE_URL: proxy.url },
      leftOut: { kinds: [] },
    };
  };

/** The embedded Postgres, which the service starts, starts again, and ends. */
export const openEmbeddedRig: OpenRig = async (_folder, disk, resources) => {
  const dataDir = join(disk, 'data');
  await mkdir(dataDir);
  const cluster = join(dataDir, 'postgres');
  // As the service, for which connections are reserved that other users cannot take.
  const url = `postgres://plant_store@/postgres?host=${encodeURIComponent(cluster)}`;
  const query = async <Row extends pg.QueryResultRow>(sql: string, parameters?: unknown[]) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      return (await client.query<Row>(sql, parameters)).rows;
    } finally {
      await client.end();
    }
  };
  const disturbance = disturb(cluster);
  // It ends by itself when the service has ended, and keeps the disk busy until then.
  resources.defer(() =>
    waitFor('The end of Postgres', 60, new AbortController().signal, () => {
      return !existsSync(join(cluster, 'postmaster.pid'));
    }),
  );
  return {
    server: {
      url,
      query,
      administer: async (sql) => void (await query(sql)),
      restartsItself: true,
      start: () => Promise.resolve(),
      ...disturbance,
      // Killed with its service, it may have ended by itself.
      kill: () =>
        disturbance.kill().catch((error: NodeJS.ErrnoException) => {
          if (error.code !== 'ENOENT') throw error;
        }),
    },
    proxy: undefined,
    env: { DATA_DIR: dataDir },
    leftOut: {
      kinds: ['cut-database', 'jump-clock'],
      reason:
        'Left out: cut connections, and jumps of the clock, after which connections are cut: nothing is between the service and its embedded Postgres.',
    },
  };
};
