import { readStoredPlants } from '../setup/database/stored-plants.js';
import { setTimeout as delay } from 'node:timers/promises';
import { generator } from '../setup/model/random.js';
import { untilIdleAt } from '../setup/service/clean-state.js';
import { describeMachine } from './environment.js';
import type { RunContext } from './exit-code.js';
import { startClients, type AllClients } from './all-clients.js';
import { isKill, LOSE_PLANT, type Kind } from './plan.js';
import { waitFor } from './wait-for.js';
import { createReport, type FaultRecord, type Report } from './report.js';
import type { Fault, OpenRig, Rig } from './rig.js';
import { clock } from './times.js';
import { createToken, revokeToken } from '../setup/service/tokens.js';

/** Far longer than any outage, so that a service that takes longer needs help. */
const RECOVERY_SECONDS = 60;

/** A service has recovered after this number of acknowledgments. */
const RECOVERED = 20;

export interface RunSettings {
  /** The name of the rig, for the report. */
  readonly rig: string;
  readonly openRig: OpenRig;
  /** @param isPossible whether this machine allows a fault */
  readonly plan: (isPossible: (kind: Kind) => boolean) => readonly Kind[];
  readonly seed: number;
  /** Settings of the rig that differ from the defaults. */
  readonly settings: Readonly<Record<string, string>>;
}

/**
 * Starts Postgres and services, disturbs them under load, and compares the rows with the responses. Everything that it
 * starts has ended when it returns or throws.
 *
 * @throws Error when a program does not start, or the run is interrupted
 */
export async function run(
  { rig: name, openRig, plan, seed, settings }: RunSettings,
  context: RunContext,
): Promise<Report> {
  const { signal, print } = context;
  await using resources = new AsyncDisposableStack();
  const rig = await openRig(settings, context, resources);
  const { leftOut } = rig;
  leftOut.forEach(print);
  const kinds = plan((kind) => kind === LOSE_PLANT || kind in rig.faults);
  const environment = {
    ...(await describeMachine()),
    postgres: await versionOf(rig),
    ...rig.versions,
  };
  const token = await createToken(rig.url, 'faults');
  const revoked = await createToken(rig.url, 'revoked');
  await revokeToken(rig.url, 'revoked');
  // Settings that lose commits must not lose the schema and the token, or nothing would be left to test.
  await rig.query('CHECKPOINT');
  const startedAt = new Date().toISOString();
  const load = startClients(rig, token, revoked, seed);
  resources.defer(() => load.close());

  const faults: FaultRecord[] = [];
  const problems: string[] = [];
  try {
    await causeAll(kinds, rig, load, generator(seed), context, faults);
  } catch (error) {
    signal.throwIfAborted();
    problems.push((error as Error).message);
  }
  problems.push(...endedServices(rig));
  await load.stop();
  const duration = load.now();
  for (const { url } of rig.services) {
    await untilIdleAt(url).catch((error: Error) => problems.push(error.message));
  }
  print('compares the rows with the responses');
  const rows = await readStoredPlants(rig);
  const facts = { startedAt, rig: name, seed, environment, settings, duration, leftOut };
  return createReport(facts, faults, load.histories, rows, problems);
}

/**
 * Causes one fault after the other, each at a random moment after the recovery from the last one.
 *
 * @param records receives the faults, also the one that nothing recovers from
 * @throws Error when something does not recover
 */
async function causeAll(
  kinds: readonly Kind[],
  rig: Rig,
  load: AllClients,
  random: (below: number) => number,
  { signal, print }: RunContext,
  records: FaultRecord[],
): Promise<void> {
  const faults: Rig['faults'] = { ...rig.faults, [LOSE_PLANT]: losePlant(rig) };
  const pause = () => {
    const { shortest, longest } = rig.pauseMs;
    return delay(shortest + random(longest - shortest), undefined, { signal });
  };
  let kills = 0;
  for (const [index, kind] of kinds.entries()) {
    await pause();
    await rig.becomesComplete();
    const [ended] = endedServices(rig);
    if (ended !== undefined) throw new Error(ended);
    const at = load.now();
    let description: string = kind;
    let takenBackAt = Infinity;
    try {
      description = await faults[kind]!({ random, resetConnections: load.resetConnections });
      takenBackAt = load.now();
      await recover(kind, rig, load, signal);
    } finally {
      const recoveredAt = load.now();
      takenBackAt = Math.min(takenBackAt, recoveredAt);
      const losesConnections = rig.losesConnections.includes(kind);
      records.push({ kind, description, losesConnections, at, takenBackAt, recoveredAt });
    }
    if (isKill(kind)) kills++;
    print(
      `${clock(load.now())}, ${index + 1} of ${kinds.length} faults, ${kills} kills, ` +
        `${load.acknowledged()} acknowledged: ${description}`,
    );
  }
  await pause();
}

/** Waits until all clients get acknowledgments again, and all services are ready. */
async function recover(kind: Kind, rig: Rig, load: AllClients, signal: AbortSignal): Promise<void> {
  const goals = load.histories.map((history) => ({
    history,
    goal: history.acknowledgedAt.length + RECOVERED,
  }));
  for (const { history, goal } of goals) {
    const what = `The recovery of the ${history.label} after ${kind}`;
    await waitFor(what, RECOVERY_SECONDS, signal, () => history.acknowledgedAt.length >= goal);
  }
  for (const service of rig.services) await service.becomesReady();
}

async function versionOf(rig: Rig): Promise<string> {
  const [row] = await rig.query<{ version: string }>('SELECT version()');
  return row!.version.split(' on ')[0]!;
}

/** @returns a sentence for each service that no longer is the process that was started */
function endedServices({ services }: Rig): string[] {
  const ended = services.filter((service) => service.hasEnded());
  return ended.map(({ label }) => `The ${label} ended by itself.`);
}

const losePlant =
  (rig: Rig): Fault =>
  async () => {
    await rig.query(
      'DELETE FROM plants WHERE id = (SELECT id FROM plants ORDER BY created_at LIMIT 1)',
    );
    return 'a plant deleted';
  };
