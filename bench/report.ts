import { availableParallelism, cpus, release, totalmem, type } from 'node:os';
import { tableOf } from '../src/cli/table.js';
import { contenderVersions } from './contenders.js';
import type { LoadGenerator } from './load.js';
import type { Plan } from './measure.js';
import type { BenchServer } from './postgres.js';
import { currentCommit } from './repository.js';
import { LABELS, type Part, type Ratio, type Round, type Summary } from './results.js';

/** The commit, the machine and the programs of a run. */
interface Environment {
  readonly commit: string;
  readonly node: string;
  readonly system: string;
  readonly processor: string;
  /** Cores that this process may use, which may be fewer than the machine has. */
  readonly cores: number;
  readonly coresOfMachine: number;
  readonly memoryBytes: number;
  readonly postgres: {
    readonly version: string;
    readonly settings: Readonly<Record<string, string>>;
  };
  readonly generator: { readonly name: string; readonly version: string };
  readonly packages: Readonly<Record<string, string>>;
}

/** A run with all its results, as the JSON file has it. */
export interface Report {
  readonly startedAt: string;
  readonly plan: Plan;
  readonly environment: Environment;
  readonly ratios: readonly Ratio[];
  readonly summaries: readonly Summary[];
  readonly problems: readonly string[];
  readonly rounds: readonly Round[];
}

const PART_TITLES: Record<Part, string> = {
  speed: 'One process, at full speed',
  lone: 'One connection',
  rates: 'Fixed rates',
  processes: 'Four processes',
  table: 'Full table',
  memory: 'Memory',
  shards: 'On Citus, a coordinator and two workers',
};

export function describeEnvironment(server: BenchServer, generator: LoadGenerator): Environment {
  const { version, settings } = server;
  return {
    commit: currentCommit(),
    node: process.version,
    system: `${type()} ${release()}`,
    processor: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    coresOfMachine: cpus().length,
    memoryBytes: totalmem(),
    postgres: { version, settings },
    generator: { name: generator.name, version: generator.version },
    packages: contenderVersions(),
  };
}

/** @returns the report for a terminal */
export function formatReport(report: Report): string {
  return [
    formatSummaries(report),
    'Ratios',
    formatRatios(report.ratios),
    formatEnvironment(report.environment),
    ...report.problems.map((problem) => `Failed: ${problem}`),
  ].join('\n\n');
}

function formatEnvironment(environment: Environment): string {
  const { postgres, generator, packages } = environment;
  const pairs = (values: Readonly<Record<string, string>>) =>
    Object.entries(values)
      .map(([name, value]) => `${name} ${value}`)
      .join(', ');
  return `Commit ${environment.commit}, Node ${environment.node}, ${pairs(packages)}
Postgres ${postgres.version}: ${pairs(postgres.settings)}
${generator.name} ${generator.version}; ${environment.system}, ${environment.processor}, ${environment.cores} of ${environment.coresOfMachine} cores, ${Math.round(environment.memoryBytes / 1024 ** 3)} GiB`;
}

function formatSummaries({ summaries }: Report): string {
  const parts = Map.groupBy(
    summaries.filter(({ part }) => part !== 'memory'),
    ({ part }) => part,
  );
  return [...parts]
    .map(([part, group]) => {
      const ours = group[0]!;
      const header = ['', 'requests/s', 'ours is', 'p50 ms', 'p99 ms', 'CPU µs/request'];
      const rows = group.map((summary) => [
        nameOf(summary),
        Math.round(summary.throughput).toLocaleString('en') +
          (summary.isReached === false ? ' (too few)' : ''),
        part === 'rates' || summary === ours
          ? ''
          : `× ${digits(ours.throughput / summary.throughput)}`,
        digits(summary.p50),
        digits(summary.p99),
        summary.cpuMicrosecondsPerRequest === undefined
          ? '–'
          : String(Math.round(summary.cpuMicrosecondsPerRequest)),
      ]);
      return `${PART_TITLES[part]}: ${ours.connections} ${ours.connections === 1 ? 'connection' : 'connections'}, medians of ${ours.rounds} rounds\n${tableOf([header, ...rows], 'end')}`;
    })
    .join('\n\n');
}

function nameOf({ contender, rate }: Summary): string {
  const label = LABELS[contender];
  return rate === undefined ? label : `${label} at ${rate.toLocaleString('en')}/s`;
}

function formatRatios(ratios: readonly Ratio[]): string {
  const rows = ratios.map(({ row, description, value, target, isMet }) => [
    description,
    row,
    value === undefined ? 'not measured' : digits(value),
    target === undefined
      ? ''
      : (target.atLeast === undefined ? `≤ ${target.atMost}` : `≥ ${target.atLeast}`) +
        (target.aim === undefined ? '' : `, aim ${target.aim}`),
    isMet === undefined ? '' : isMet ? 'met' : 'MISSED',
  ]);
  return tableOf([['', 'row', 'measured', 'target', ''], ...rows], 'end');
}

/** @returns three significant digits, enough for a ratio and for milliseconds */
function digits(value: number | undefined): string {
  if (value === undefined) return '–';
  return value >= 100 ? String(Math.round(value)) : value.toPrecision(3);
}
