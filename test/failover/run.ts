import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Surroundings } from '../setup/fault-program.js';
import { waitFor } from '../setup/service/program.js';
import { generator } from '../setup/model/random.js';
import { clock } from '../setup/model/times.js';
import { startCluster, type Cluster } from './cluster.js';
import { describeEnvironment } from './environment.js';
import { cause, type Fault } from './faults.js';
import type { Plant } from './history.js';
import { startLoad, type Load } from './load.js';
import type { Programs } from './programs.js';
import { createReport, labelOf, type FaultRecord, type Report } from './report.js';

/** Far longer than any outage of the cluster, so that a service that takes longer needs help. */
const RECOVERY_SECONDS = 60;

/** The service has recovered after this number of acknowledgments. */
const RECOVERED = 20;

const SHORTEST_PAUSE_MS = 1000;

export interface Plan {
  readonly faults: readonly Fault[];
  readonly seed: number;
  /** Upper limit of the load between two faults. */
  readonly longestPauseMs: number;
  /** Seconds until PgBouncer connects again after a failure. */
  readonly serverLoginRetry: number;
}

/** What a run needs, and how it is watched and interrupted. */
export interface ClusterSurroundings extends Surroundings {
  readonly programs: Programs;
}

/**
 * Builds a cluster, sends plants by way of each of its proxies, disturbs the primaries one after the other, and compares
 * the rows with the responses. Everything that it starts has ended when it returns or throws.
 *
 * @throws Error when the cluster or a service does not start, or the run is interrupted
 */
export async function run(plan: Plan, surroundings: ClusterSurroundings): Promise<Report> {
  const { programs, folder, signal, tell } = surroundings;
  await using resources = new AsyncDisposableStack();
  const environment = await describeEnvironment(programs);
  tell('starts the cluster');
  const cluster = await startCluster(programs, folder, plan.serverLoginRetry, signal);
  resources.defer(() => cluster.close());
  tell('starts the services');
  const load = await startLoad(cluster.urls, folder, signal);
  const startedAt = new Date().toISOString();
  resources.defer(() => load.close());

  const faults: FaultRecord[] = [];
  const problems: string[] = [];
  try {
    await causeAll(plan, surroundings, cluster, load, faults);
  } catch (error) {
    signal.throwIfAborted();
    problems.push((error as Error).message);
  }
  if (!load.isRunning()) problems.push('A service ended by itself.');
  const duration = load.now();
  tell('compares the rows with the responses');
  await load.stop();
  await load.untilIdle().catch((error: Error) => problems.push(error.message));
  const rows = await readRows(cluster);
  const { seed, serverLoginRetry } = plan;
  const facts = { startedAt, seed, serverLoginRetry, environment, duration };
  return createReport(facts, faults, load.targets, rows, problems);
}

/**
 * Causes one fault after the other, each when the cluster and all clients have recovered from the last one.
 *
 * @param records receives the faults, also the one that nothing recovers from
 * @throws Error when something does not recover
 */
async function causeAll(
  { faults, seed, longestPauseMs }: Plan,
  { signal, tell }: ClusterSurroundings,
  cluster: Cluster,
  load: Load,
  records: FaultRecord[],
): Promise<void> {
  const random = generator(seed);
  const pause = () => {
    const milliseconds = SHORTEST_PAUSE_MS + random(longestPauseMs - SHORTEST_PAUSE_MS);
    return delay(milliseconds, undefined, { signal });
  };
  for (const [index, fault] of faults.entries()) {
    await pause();
    await cluster.becomesComplete();
    const at = load.now();
    tell(`${clock(at)}, ${index + 1} of ${faults.length}: ${fault}`);
    const record = { fault, description: fault as string, at };
    records.push(record);
    record.description = await cause(fault, cluster, random, signal);
    for (const target of load.targets) {
      const goal = target.history.acknowledgedAt.length + RECOVERED;
      await waitFor(`The recovery of the ${labelOf(target)}`, RECOVERY_SECONDS, signal, () => {
        return target.history.acknowledgedAt.length >= goal;
      });
    }
  }
  await pause();
}

/** Reads all plants from the primary itself. */
async function readRows(cluster: Cluster): Promise<Map<string, Plant>> {
  const primary = await cluster.primary();
  if (primary === undefined) throw new Error('The cluster has no primary, so no row was compared.');
  const client = new pg.Client({ connectionString: `${primary.url}/plants` });
  await client.connect();
  const { rows } = await client.query<Plant>('SELECT id::text AS id, name, tag FROM plants');
  await client.end();
  return new Map(rows.map((row) => [row.id, row]));
}
