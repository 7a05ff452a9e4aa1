import { chown, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import { pgbouncerConfig } from '../../setup/database/pgbouncer-config.js';
import { findFreePorts } from '../../setup/process/ports.js';
import { findUser } from '../../setup/process/processes.js';
import type { RunContext } from '../exit-code.js';
import { startProgram } from '../../setup/process/program.js';
import { waitFor } from '../wait-for.js';
import { ClusterNode } from './node.js';
import {
  documentedPatroniSettings,
  haproxyConfig,
  patroniConfig,
  pgbouncerSettings,
} from './settings.js';

const NODES = ['pg1', 'pg2', 'pg3'];

const START_SECONDS = 90;

/** Paths of the programs; `postgres` is the folder of Postgres' programs. */
export type Programs = Readonly<
  Record<'etcd' | 'patroni' | 'haproxy' | 'pgbouncer' | 'postgres', string>
>;

/** Three Postgres servers with failover, and two proxies in front of them. */
export interface Cluster {
  readonly nodes: readonly ClusterNode[];
  /** Addresses of the database by way of each proxy. */
  readonly urls: { readonly haproxy: string; readonly pgbouncer: string };
  /** @returns the node that Patroni calls the primary; undefined while there is none */
  primary(): Promise<ClusterNode | undefined>;
  /** Waits until a primary has two standbys, one of them synchronous. */
  becomesComplete(): Promise<void>;
  close(): Promise<void>;
}

/**
 * Starts a cluster on loopback, with the settings that docs/scaling.md recommends.
 *
 * @param settings of PgBouncer that differ
 * @throws Error when a program does not start
 */
export async function startCluster(
  programs: Programs,
  settings: Readonly<Record<string, string>>,
  { folder, signal }: RunContext,
): Promise<Cluster> {
  await using started = new AsyncDisposableStack();
  const user = await findUser();
  if (user.uid !== undefined) await chown(folder, user.uid, user.gid);
  const log = (name: string) => join(folder, `${name}.log`);
  const start = async (name: string, command: string[]) => {
    const program = await startProgram(command, log(name), { user });
    started.defer(() => program.stop());
  };

  const [etcdPort, peerPort, haproxyPort, pgbouncerPort, ...nodePorts] = (await findFreePorts(
    4 + 2 * NODES.length,
  )) as [number, number, number, number, ...number[]];
  const etcdFolder = join(folder, 'etcd');
  await mkdir(etcdFolder, { mode: 0o700 });
  if (user.uid !== undefined) await chown(etcdFolder, user.uid, user.gid);
  await start('etcd', [
    programs.etcd,
    '--enable-v2=true',
    `--data-dir=${etcdFolder}`,
    `--listen-client-urls=http://127.0.0.1:${etcdPort}`,
    `--advertise-client-urls=http://127.0.0.1:${etcdPort}`,
    `--listen-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-advertise-peer-urls=http://127.0.0.1:${peerPort}`,
    `--initial-cluster=default=http://127.0.0.1:${peerPort}`,
  ]);

  await waitFor('The start of etcd', START_SECONDS, signal, () => responds(etcdPort));

  const addresses = NODES.map((name, index) => ({
    name,
    port: nodePorts[2 * index]!,
    restPort: nodePorts[2 * index + 1]!,
  }));
  const shared = documentedPatroniSettings();
  const nodes: ClusterNode[] = [];
  for (const address of addresses) {
    const configFile = join(folder, `${address.name}.json`);
    await writeFile(
      configFile,
      patroniConfig(address, shared, etcdPort, folder, programs.postgres),
    );
    const node = new ClusterNode({
      ...address,
      patroni: programs.patroni,
      configFile,
      dataFolder: join(folder, address.name),
      logFile: log(address.name),
      user,
    });
    nodes.push(node);
    started.defer(() => node.kill());
    await node.start();
  }

  const haproxyFile = join(folder, 'haproxy.cfg');
  await writeFile(haproxyFile, haproxyConfig(haproxyPort, addresses));
  await start('haproxy', [programs.haproxy, '-db', '-f', haproxyFile]);

  const userFile = join(folder, 'users.txt');
  const pgbouncerFile = join(folder, 'pgbouncer.ini');
  await writeFile(userFile, '"plants" ""\n');
  const database = { name: 'plants', port: haproxyPort };
  await writeFile(
    pgbouncerFile,
    pgbouncerConfig(pgbouncerPort, database, userFile, pgbouncerSettings(settings)),
  );
  await start('pgbouncer', [programs.pgbouncer, pgbouncerFile]);

  const primary = async () => {
    const found = await Promise.all(nodes.map((node) => node.hasRole('primary')));
    return nodes.find((_, index) => found[index]);
  };
  const count = async (role: string) =>
    (await Promise.all(nodes.map((node) => node.hasRole(role)))).filter(Boolean).length;
  const becomesComplete = () =>
    waitFor('A complete cluster', START_SECONDS, signal, async () => {
      const [primaries, replicas, synchronous] = await Promise.all(
        ['primary', 'replica', 'sync'].map(count),
      );
      return primaries === 1 && replicas === NODES.length - 1 && synchronous! > 0;
    });

  await becomesComplete();
  const client = new pg.Client({ connectionString: `${(await primary())!.url}/postgres` });
  await client.connect();
  await client.query('CREATE ROLE plants LOGIN');
  // The service behind PgBouncer needs them, as docs/scaling.md says.
  await client.query('ALTER ROLE plants SET statement_timeout = 1200');
  await client.query('ALTER ROLE plants SET lock_timeout = 150');
  await client.query('CREATE DATABASE plants OWNER plants');
  await client.end();

  const owned = started.move();
  return {
    nodes,
    urls: {
      haproxy: `postgres://plants@127.0.0.1:${haproxyPort}/plants`,
      pgbouncer: `postgres://plants@127.0.0.1:${pgbouncerPort}/plants`,
    },
    primary,
    becomesComplete,
    close: () => owned.disposeAsync(),
  };
}

function responds(port: number): Promise<boolean> {
  return fetch(`http://127.0.0.1:${port}/health`).then(
    ({ ok }) => ok,
    () => false,
  );
}
