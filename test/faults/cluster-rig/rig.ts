import { join } from 'node:path';
import type pg from 'pg';
import { findInstalledPostgres } from '../../setup/database/postgres-server.js';
import { firstLine } from '../environment.js';
import { findProgram, requirePackages } from '../packages.js';
import { queryOnce } from '../../setup/database/query-once.js';
import type { OpenRig } from '../rig.js';
import { startServiceProcess, type ServiceProcess } from '../service.js';
import { startCluster, type Cluster, type Programs } from './cluster.js';
import { clusterFaults } from './faults.js';

/** The loads are small, because the cluster shares the machine with its services. */
const LOAD = { clients: 8, pauseMs: 50 } as const;

/** Longer than Patroni's `loop_wait`, so that a fault meets any moment of its loop. */
const PAUSE_MS = { shortest: 1000, longest: 5000 } as const;

const PROXIES = { haproxy: 'HAProxy', pgbouncer: 'PgBouncer' } as const;

/** Services behind each proxy of a cluster with failover, with a plain client beside each of them. */
export const openClusterRig: OpenRig = async (settings, context, resources) => {
  const { folder, signal, print } = context;
  const programs = await findPrograms();
  print('starts the cluster');
  const cluster = await startCluster(programs, settings, context);
  resources.defer(() => cluster.close());
  print('starts the services');
  const services: ServiceProcess[] = [];
  for (const proxy of ['haproxy', 'pgbouncer'] as const) {
    const options = {
      label: `Plant Store behind ${PROXIES[proxy]}`,
      log: join(folder, `service-${proxy}.log`),
      env: { DATABASE_URL: cluster.urls[proxy] },
      signal,
    };
    services.push(await startServiceProcess(options, resources));
  }
  return {
    services,
    plainDatabases: (['haproxy', 'pgbouncer'] as const).map((proxy) => ({
      label: `plain client behind ${PROXIES[proxy]}`,
      url: cluster.urls[proxy],
    })),
    url: cluster.urls.haproxy,
    load: LOAD,
    pauseMs: PAUSE_MS,
    faults: clusterFaults(cluster, signal),
    losesConnections: [],
    leftOut: [],
    versions: await versionsOf(programs),
    query: (sql) => queryPrimary(cluster, sql),
    becomesComplete: () => cluster.becomesComplete(),
  };
};

/** @throws CannotRunError that names what to install */
async function findPrograms(): Promise<Programs> {
  const paths = requirePackages({
    'etcd-server': findProgram('etcd'),
    patroni: findProgram('patroni'),
    haproxy: findProgram('haproxy'),
    pgbouncer: findProgram('pgbouncer'),
    postgresql: await findInstalledPostgres().catch(() => undefined),
  });
  return { ...paths, etcd: paths['etcd-server'], postgres: paths.postgresql };
}

async function versionsOf(programs: Programs): Promise<Record<string, string>> {
  return {
    patroni: await firstLine(programs.patroni, ['--version']),
    etcd: await firstLine(programs.etcd, ['--version']),
    haproxy: await firstLine(programs.haproxy, ['-v']),
    pgbouncer: await firstLine(programs.pgbouncer, ['--version']),
  };
}

/** Asks the primary itself, by way of no proxy. */
async function queryPrimary<Row extends pg.QueryResultRow>(
  cluster: Cluster,
  sql: string,
): Promise<Row[]> {
  const primary = await cluster.primary();
  if (primary === undefined) throw new Error('The cluster has no primary.');
  return queryOnce<Row>(`${primary.url}/plants`, sql);
}
