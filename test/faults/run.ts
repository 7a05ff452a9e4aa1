import { setTimeout as delay } from 'node:timers/promises';
import { untilIdleAt } from '../setup/service/clean-state.js';
import type { Surroundings } from '../setup/fault-program.js';
import type { StoredRow } from '../setup/model/history.js';
import { describeMachine } from '../setup/service/machine.js';
import { findFreePorts } from '../setup/service/ports.js';
import { waitFor } from '../setup/service/program.js';
import { generator } from '../setup/model/random.js';
import { createToken, revokeToken } from '../setup/service/service-program.js';
import { clock } from '../setup/model/times.js';
import { mountSmallDisk } from './disk.js';
import { cause, type Targets } from './faults.js';
import { startLoad } from './load.js';
import { isKill, KINDS, LOSE_PLANT, type Kind } from './plan.js';
import { createReport, type FaultRecord, type Report } from './report.js';
import type { OpenRig } from './rig.js';
import { Service } from './service.js';

/** Far longer than any fault lasts, so that a service that takes longer needs help. */
const RECOVERY_SECONDS = 60;

/** The service has recovered after this number of acknowledgments. */
const RECOVERED = 20;

/** The load between two faults. */
const PAUSE_MS = { shortest: 100, longest: 1000 } as const;

const NO_DISK =
  'Left out: the full disk, because only root may mount the file system that it needs.';

export interface RunSettings {
  /** @param allowed the faults that this machine allows */
  readonly plan: (allowed: readonly Kind[]) => readonly Kind[];
  readonly seed: number;
  /** Settings of Postgres that differ from the defaults. */
  readonly settings: Readonly<Record<string, string>>;
  readonly faketime: string;
  readonly openRig: OpenRig;
}

/**
 * Starts Postgres and the service, disturbs them under load, and compares the rows with the responses. Everything that
 * it starts has ended when it returns or throws.
 *
 * @throws Error when Postgres or the service does not start, or the run is interrupted
 */
export async function run(
  { plan, seed, settings, faketime, openRig }: RunSettings,
  { folder, signal, tell }: Surroundings,
): Promise<Report> {
  await using resources = new AsyncDisposableStack();
  const disk = await mountSmallDisk();
  resources.defer(async () => disk?.close());
  const { server, proxy, env, ...rig } = await openRig(folder, disk?.folder ?? folder, resources);
  const impossible: readonly Kind[] = [
    ...rig.leftOut.kinds,
    ...(disk === undefined ? (['fill-disk'] as const) : []),
  ];
  const leftOut = [disk === undefined ? NO_DISK : undefined, rig.leftOut.reason].filter(
    (reason) => reason !== undefined,
  );
  leftOut.forEach(tell);
  const kinds = plan(
    ([...KINDS, LOSE_PLANT] as const).filter((kind) => !impossible.includes(kind)),
  );

  const [port] = (await findFreePorts(1)) as [number];
  const service = new Service({ port, env, folder, faketime, signal });
  resources.defer(() => service.kill());
  await service.setClock(0);
  await service.start();
  await service.becomesReady();
  const [token, revoked] = [
    await createToken(server.url, 'faults'),
    await createToken(server.url, 'revoked'),
  ];
  await revokeToken(server.url, 'revoked');
  // Settings that lose commits must not lose the schema and the token, or nothing would be left to test.
  await server.administer('CHECKPOINT');
  const startedAt = new Date().toISOString();
  const load = startLoad(service.url, token, revoked, seed);
  resources.defer(() => load.close());

  const random = generator(seed);
  const targets: Targets = { server, proxy, service, load, disk, random, signal };
  const faults: FaultRecord[] = [];
  const problems: string[] = [];
  try {
    await causeAll(kinds, targets, tell, faults);
  } catch (error) {
    signal.throwIfAborted();
    problems.push((error as Error).message);
  }
  if (service.hasEnded()) problems.push('The service ended by itself.');
  await load.stop();
  const duration = load.now();
  await untilIdleAt(service.url).catch((error: Error) => problems.push(error.message));
  tell('compares the rows with the responses');
  const rows = await server.query<StoredRow>('SELECT id::text AS id, name, tag FROM plants');
  const environment = await describeMachine();
  const facts = { startedAt, seed, environment, settings, duration, leftOut };
  return createReport(facts, faults, load, rows, problems);
}

/**
 * Causes one fault after the other, each at a random moment after the recovery from the last one.
 *
 * @param records receives the faults, also the one that nothing recovers from
 * @throws Error when something does not recover
 */
async function causeAll(
  kinds: readonly Kind[],
  targets: Targets,
  tell: (text: string) => void,
  records: FaultRecord[],
): Promise<void> {
  const { load, service, random, signal } = targets;
  const pause = () => {
    const milliseconds = PAUSE_MS.shortest + random(PAUSE_MS.longest - PAUSE_MS.shortest);
    return delay(milliseconds, undefined, { signal });
  };
  let kills = 0;
  for (const [index, kind] of kinds.entries()) {
    await pause();
    if (service.hasEnded()) throw new Error('The service ended by itself.');
    const at = load.now();
    let description: string = kind;
    let takenBackAt = Infinity;
    try {
      description = await cause(kind, targets);
      takenBackAt = load.now();
      const goal = load.acknowledgedAt.length + RECOVERED;
      await waitFor(`The recovery after ${kind}`, RECOVERY_SECONDS, signal, () => {
        return load.acknowledgedAt.length >= goal;
      });
      await service.becomesReady();
    } finally {
      const recoveredAt = load.now();
      takenBackAt = Math.min(takenBackAt, recoveredAt);
      records.push({ kind, description, at, takenBackAt, recoveredAt });
    }
    if (isKill(kind)) kills++;
    tell(
      `${clock(load.now())}, ${index + 1} of ${kinds.length} faults, ${kills} kills, ` +
        `${load.acknowledgedAt.length} acknowledged: ${description}`,
    );
  }
  await pause();
}
