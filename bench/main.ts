import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { Command, InvalidArgumentError, Option } from 'commander';
import { drawChart } from './chart.js';
import { findLoadGenerator } from './load.js';
import { Measurement, plannedSeconds, type Plan } from './measure.js';
import { openBenchServer } from './postgres.js';
import { Progress } from './progress.js';
import { describeEnvironment, formatReport, type Report } from './report.js';
import { ratiosOf, summarize, type Part } from './results.js';

interface Options {
  quick?: true;
  full?: true;
  check?: true;
  parts?: Part[];
  connections: number;
  seconds?: number;
  rounds?: number;
  rows: number;
  requests: number;
  generator?: 'wrk' | 'autocannon';
  output: string;
}

const ALL_PARTS: readonly Part[] = [
  'speed',
  'lone',
  'rates',
  'processes',
  'table',
  'memory',
  'shards',
];

const program = new Command('npm run bench --')
  .description(
    'Measures the Plant Store and its peers, in alternating rounds on one Postgres: the server in DATABASE_URL, or one that the benchmark starts.',
  )
  .addOption(
    new Option('--quick', 'measure only the throughput of one process: about a minute').conflicts(
      'full',
    ),
  )
  .option('--full', 'measure all parts, with longer rounds: about twenty minutes')
  .option('--check', 'exit with 1 when a target is missed')
  .addOption(
    new Option(
      '--parts <names...>',
      'measure only these parts; "rates" needs "speed", "shards" needs Citus for the local Postgres',
    ).choices(ALL_PARTS),
  )
  .option('--connections <number>', 'connections of clients', parseCount, 64)
  .option('--seconds <number>', 'length of a round', parseCount)
  .option('--rounds <number>', 'rounds of each contender', parseCount)
  .option('--rows <number>', 'rows of the full table', parseCount, 10_000_000)
  .option('--requests <number>', 'requests after which memory is compared', parseCount, 1_000_000)
  .addOption(
    new Option('--generator <name>', 'load generator (default: wrk if it is installed)').choices([
      'wrk',
      'autocannon',
    ]),
  )
  .option('--output <folder>', 'folder for the results', 'bench/results');

function parseCount(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new InvalidArgumentError('Give a whole number above 0.');
  return Number(text);
}

function planOf(options: Options): Plan {
  const mode =
    options.quick === true
      ? { parts: ['speed'] as const, seconds: 2, rounds: 3, warmUpSeconds: 3 }
      : options.full === true
        ? { parts: ALL_PARTS, seconds: 8, rounds: 5, warmUpSeconds: 8 }
        : { parts: ['speed', 'lone', 'rates'] as const, seconds: 5, rounds: 3, warmUpSeconds: 5 };
  const seconds = options.seconds ?? mode.seconds;
  const wanted = options.parts ?? mode.parts;
  return {
    parts: ALL_PARTS.filter((part) => wanted.includes(part)),
    connections: options.connections,
    seconds,
    rounds: options.rounds ?? mode.rounds,
    warmUpSeconds: options.seconds ?? mode.warmUpSeconds,
    rows: options.rows,
    requests: options.requests,
  };
}

/** @returns the results; every process and file that the measurement made is removed, even when it fails */
async function measure(options: Options, signal: AbortSignal): Promise<Report> {
  await using resources = new AsyncDisposableStack();
  const plan = planOf(options);
  const startedAt = new Date().toISOString();
  const generator = await findLoadGenerator(options.generator);
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-bench-'));
  resources.defer(() => rm(folder, { recursive: true }));
  const server = await openBenchServer(process.env['DATABASE_URL']);
  resources.defer(() => server.close());
  signal.throwIfAborted();

  const progress = new Progress(process.stderr, plannedSeconds(plan));
  resources.defer(() => progress.stop());
  const measurement = new Measurement(plan, { server, generator, folder, signal }, progress);
  await measurement.run();
  if (measurement.rounds.length === 0) throw new Error('Nothing was measured.');
  return {
    startedAt,
    plan,
    environment: describeEnvironment(server, generator),
    ratios: ratiosOf(measurement.rounds, plan),
    summaries: summarize(measurement.rounds),
    problems: measurement.problems,
    rounds: measurement.rounds,
  };
}

/** @returns the paths of the files */
async function save(report: Report, folder: string): Promise<string[]> {
  await mkdir(folder, { recursive: true });
  const path = join(folder, report.startedAt.replace(/\..*$/, '').replaceAll(':', '-'));
  const { node, postgres, cores, processor, commit } = report.environment;
  const caption = `Node ${node}, Postgres ${postgres.version.split(' ')[0]}, ${cores} cores (${processor}), ${report.plan.connections} connections, commit ${commit}`;
  const files = [
    [`${path}.json`, `${JSON.stringify(report, null, 2)}\n`],
    [`${path}.svg`, drawChart(report.summaries, caption)],
  ] as const;
  for (const [file, content] of files) await writeFile(file, content);
  return files.map(([file]) => relative(process.cwd(), file));
}

async function main(): Promise<number> {
  const options = program.parse().opts<Options>();
  const interruption = new AbortController();
  // The terminal signals this process and npm, which passes the signal on: a second signal is ignored.
  for (const name of ['SIGINT', 'SIGTERM'] as const) {
    process.on(name, () => interruption.abort());
  }
  try {
    const report = await measure(options, interruption.signal);
    process.stdout.write(`\n${formatReport(report)}\n\n`);
    const files = await save(report, resolve(options.output));
    process.stdout.write(`${files.join('\n')}\n`);
    const isMissed = report.ratios.some(({ isMet }) => isMet === false);
    return report.problems.length > 0 || (options.check === true && isMissed) ? 1 : 0;
  } catch (error) {
    const text = interruption.signal.aborted
      ? 'Interrupted: nothing was saved, and everything that was started has been stopped.'
      : error instanceof Error
        ? error.message
        : String(error);
    process.stderr.write(`${text}\n`);
    return 1;
  }
}

process.exit(await main());
