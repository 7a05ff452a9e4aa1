import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { startDatabaseProxy } from '../../setup/database/database-proxy.js';
import { disturb, startPostgresServer } from '../../setup/database/postgres-server.js';
import { mountSmallDisk, type SmallDisk } from '../../setup/process/disk.js';
import type { RunContext } from '../exit-code.js';
import { findFaketime, requirePackages } from '../packages.js';
import { waitFor } from '../wait-for.js';
import { queryOnce } from '../../setup/database/query-once.js';
import type { Kind } from '../plan.js';
import type { OpenRig, Rig } from '../rig.js';
import { startServiceProcess, type ServiceOptions } from '../service.js';
import { diskFaults, proxyFaults, serviceFaults, type Targets } from './faults.js';
import type { FaultServer } from './postgres.js';

/** Few connections, so that they can be taken; a small log, which fits a small disk. */
const SETTINGS = { max_connections: '40', max_wal_size: '64MB', min_wal_size: '32MB' };

/** Faults that end the connections of clients to any service. */
const LOSE_CONNECTIONS: readonly Kind[] = ['kill-service', 'kill-both', 'reset-clients'];

const NO_DISK =
  'Left out: the full disk, because only root may mount the file system that it needs.';

const NO_PROXY =
  'Left out: cut connections, and jumps of the clock, after which connections are cut: nothing is between the service and its embedded Postgres.';

/** A Postgres server, and a proxy between it and the service. */
export const openServerRig: OpenRig = async (settings, context, resources) => {
  const { folder } = context;
  const { faketime, disk } = await openMachine(resources);
  const server = await startPostgresServer({
    settings: { ...SETTINGS, ...settings },
    parent: disk?.folder ?? folder,
  });
  resources.defer(async () => {
    await copyFile(server.logFile, join(folder, 'postgres.log'));
    await server.close();
  });
  const proxy = await startDatabaseProxy(server.url);
  resources.defer(() => proxy.close());
  const env = { DATABASE_URL: proxy.url };
  const targets = await startTargets(
    { ...server, restartsItself: false },
    { env, faketime },
    context,
    resources,
  );
  return openRig(targets, disk, {
    faults: proxyFaults(targets, proxy),
    losesConnections: LOSE_CONNECTIONS,
    leftOut: [],
  });
};

/** The embedded Postgres, which the service starts and ends; if it ends by itself, both are started again. */
export const openEmbeddedRig: OpenRig = async (_settings, context, resources) => {
  const { faketime, disk } = await openMachine(resources);
  const dataDir = join(disk?.folder ?? context.folder, 'data');
  await mkdir(dataDir);
  const cluster = join(dataDir, 'postgres');
  // It ends by itself when the service has ended, and keeps the disk busy until then.
  resources.defer(() =>
    waitFor('The end of Postgres', 60, new AbortController().signal, () => {
      return !existsSync(join(cluster, 'postmaster.pid'));
    }),
  );
  const env = { DATA_DIR: dataDir };
  const targets = await startTargets(
    embeddedServer(cluster),
    { env, faketime, isSupervised: true },
    context,
    resources,
  );
  return openRig(targets, disk, {
    faults: {},
    // The service ends with its Postgres.
    losesConnections: [...LOSE_CONNECTIONS, 'kill-postgres', 'fill-disk'],
    leftOut: [NO_PROXY],
  });
};

/** @param cluster the folder of its database cluster */
function embeddedServer(cluster: string): FaultServer {
  const url = `postgres://postgres@/postgres?host=${encodeURIComponent(cluster)}`;
  return {
    url,
    query: (sql, parameters) => queryOnce(url, sql, parameters),
    administer: async (sql) => void (await queryOnce(url, sql)),
    restartsItself: true,
    start: () => Promise.resolve(),
    ...disturb(cluster),
  };
}

/** What this machine gives to both rigs. */
async function openMachine(
  resources: AsyncDisposableStack,
): Promise<{ faketime: string; disk: SmallDisk | undefined }> {
  const { libfaketime } = requirePackages({ libfaketime: await findFaketime() });
  const disk = await mountSmallDisk();
  resources.defer(async () => disk?.close());
  return { faketime: libfaketime, disk };
}

async function startTargets(
  server: FaultServer,
  options: Pick<ServiceOptions, 'env' | 'faketime' | 'isSupervised'>,
  { folder, signal }: RunContext,
  resources: AsyncDisposableStack,
): Promise<Targets> {
  const log = join(folder, 'service.log');
  const service = await startServiceProcess(
    { label: 'Plant Store', log, ...options, signal },
    resources,
  );
  return { server, service, signal };
}

/** @param special the faults of this rig alone, and why others are left out */
function openRig(
  targets: Targets,
  disk: SmallDisk | undefined,
  special: Pick<Rig, 'faults' | 'losesConnections' | 'leftOut'>,
): Rig {
  const { server, service } = targets;
  return {
    services: [service],
    plainDatabases: [],
    url: server.url,
    load: { clients: 16, pauseMs: 20 },
    pauseMs: { shortest: 100, longest: 1000 },
    faults: {
      ...serviceFaults(targets),
      ...special.faults,
      ...(disk !== undefined && diskFaults(targets, disk)),
    },
    losesConnections: special.losesConnections,
    leftOut: [...(disk === undefined ? [NO_DISK] : []), ...special.leftOut],
    versions: {},
    query: (sql) => server.query(sql),
    becomesComplete: () => Promise.resolve(),
  };
}
