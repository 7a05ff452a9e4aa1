import { randomInt } from 'node:crypto';
import { relative, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { openClusterRig } from './cluster-rig/rig.js';
import { runToExitCode } from './exit-code.js';
import {
  CLUSTER_KINDS,
  isKill,
  LOSE_PLANT,
  planOfEvents,
  planOfKills,
  SERVICE_KINDS,
  shortPlan,
  type Kind,
} from './plan.js';
import { formatReport, saveReport } from './output.js';
import type { OpenRig } from './rig.js';
import { run } from './run.js';
import { openEmbeddedRig, openServerRig } from './service-rig/rigs.js';

interface RigChoice {
  readonly kinds: readonly Kind[];
  /** The faults of a run without a number. */
  readonly shortForm: readonly Kind[];
  readonly open: OpenRig;
}

const RIGS: Readonly<Record<'server' | 'embedded' | 'cluster', RigChoice>> = {
  server: { kinds: SERVICE_KINDS, shortForm: SERVICE_KINDS, open: openServerRig },
  embedded: { kinds: SERVICE_KINDS, shortForm: SERVICE_KINDS, open: openEmbeddedRig },
  // Two kills, so that a node that was killed may become the primary again.
  cluster: {
    kinds: CLUSTER_KINDS,
    shortForm: ['kill', 'kill', 'switchover'],
    open: openClusterRig,
  },
};

interface Options {
  rig: keyof typeof RIGS;
  kills?: number;
  events?: number;
  kinds?: Kind[];
  seed: number;
  setting: Record<string, string>;
  out?: string;
}

const program = new Command('npm run test:faults --')
  .description(
    'Disturbs the service and its Postgres under load, and compares the rows with the responses. Exit codes: 0 clean; 1 not clean, failed or interrupted; 2 packages are missing.',
  )
  .addOption(
    new Option(
      '--rig <name>',
      'a service on a Postgres server or on its embedded Postgres, or services on a cluster with failover',
    )
      .choices(Object.keys(RIGS))
      .default('server'),
  )
  .addOption(
    new Option(
      '--kills <number>',
      'how many, with other faults among them (default: each fault once; of a cluster, two kills and a switchover)',
    )
      .argParser(parseCount)
      .conflicts('events'),
  )
  .option('--events <number>', 'how many faults, each kind equally likely', parseCount)
  .addOption(
    new Option('--kinds <names...>', 'which (default: all of the rig but lose-plant)').choices([
      ...SERVICE_KINDS,
      ...CLUSTER_KINDS,
      LOSE_PLANT,
    ]),
  )
  .addOption(
    new Option('--seed <number>', 'repeats the choices of another run')
      .argParser(parseCount)
      .default(randomInt(1, 2 ** 31), 'at random'),
  )
  .addOption(
    new Option(
      '--setting <name=value>',
      'of the Postgres server, or of PgBouncer in front of the cluster',
    )
      .argParser(addSetting)
      .default({}, 'none'),
  )
  .option('--out <file>', 'the report as JSON (default: "test/faults/results/RIG.json")');

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new InvalidArgumentError('Give a whole number above 0.');
  return Number(text);
}

function addSetting(text: string, settings: Record<string, string>): Record<string, string> {
  const [, name, value] = /^(\w+)=(\S+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) {
    throw new InvalidArgumentError('Give a name and a value, such as synchronous_commit=off.');
  }
  return { ...settings, [name]: value };
}

const { rig, kills, events, kinds, seed, setting, out } = program.parse().opts<Options>();
const { kinds: kindsOfRig, shortForm, open } = RIGS[rig];
const unknown = kinds?.find((kind) => kind !== LOSE_PLANT && !kindsOfRig.includes(kind));
if (unknown !== undefined) {
  program.error(`error: ${unknown} is no fault of the rig ${rig}: ${kindsOfRig.join(', ')}`);
}
if (kills !== undefined && !(kinds ?? kindsOfRig).some(isKill)) {
  program.error('error: --kills needs a kill among --kinds');
}
if (rig === 'embedded' && Object.keys(setting).length > 0) {
  program.error('error: the embedded Postgres takes no --setting');
}

/** @param isPossible whether this machine allows a fault */
function plan(isPossible: (kind: Kind) => boolean): Kind[] {
  const chosen = (kinds ?? kindsOfRig).filter(isPossible);
  if (chosen.length === 0) throw new Error('This machine allows none of the chosen faults.');
  if (kills !== undefined) return planOfKills(chosen, kills, seed);
  if (events !== undefined) return planOfEvents(chosen, events, seed);
  return shortPlan(kinds === undefined ? shortForm.filter(isPossible) : chosen, seed);
}

const file = resolve(out ?? `test/faults/results/${rig}.json`);
const exitCode = await runToExitCode(file, async (context) => {
  context.print(`seed ${seed}`);
  const report = await run({ rig, openRig: open, plan, seed, settings: setting }, context);
  process.stdout.write(`\n${formatReport(report)}\n`);
  await saveReport(report, file);
  process.stdout.write(`${relative(process.cwd(), file)}\n`);
  return report.result === 'clean';
});
process.exit(exitCode);
