import { median, type Latency } from './statistics.js';

/** The contenders, with their names in the report. */
export const LABELS = {
  ours: 'Plant Store',
  unbatched: 'Plant Store, one INSERT a request',
  oursInFour: 'Plant Store, four processes',
  oursOnFull: 'Plant Store, on a full table',
  oursOnShards: 'Plant Store, on Citus',
  fastify: 'Fastify + pg',
  express: 'Express + pg',
  nest: 'NestJS + TypeORM save()',
  echo: 'node:http echo, no database',
  postgres: 'Postgres itself (pgbench)',
  citus: 'Citus itself (pgbench)',
} as const;

export type ContenderName = keyof typeof LABELS;

/** A part of the measurement, whose contenders alternate. */
export type Part = 'speed' | 'lone' | 'rates' | 'processes' | 'table' | 'memory' | 'shards';

/** One contender under load for some seconds. */
export interface Round {
  readonly part: Part;
  readonly contender: ContenderName;
  readonly connections: number;
  /** Requests a second that were sent; undefined: as many as the contender could take. */
  readonly rate?: number;
  /** Requests with a 2xx response. */
  readonly acknowledged: number;
  /** Counts of all other requests, by the kind of failure. */
  readonly failures: Readonly<Record<string, number>>;
  readonly seconds: number;
  /** Acknowledged requests a second. */
  readonly throughput: number;
  readonly latency?: Latency;
  /** Processor time of the contender's processes, without Postgres and the load generator. */
  readonly cpuMicrosecondsPerRequest?: number;
  readonly residentBytes?: number;
}

/** Medians over the rounds of one contender in one part, at one rate. */
export interface Summary {
  readonly part: Part;
  readonly contender: ContenderName;
  readonly connections: number;
  readonly rate?: number;
  readonly rounds: number;
  /** Whether a fixed rate was reached; if not, the other values say nothing about that rate. */
  readonly isReached?: boolean;
  readonly throughput: number;
  readonly p50?: number;
  readonly p99?: number;
  readonly cpuMicrosecondsPerRequest?: number;
}

/** A ratio that the service has to reach, or that is only reported. */
export interface Ratio {
  readonly row: string;
  readonly description: string;
  /** undefined when it was not measured. */
  readonly value?: number;
  /** undefined for a ratio that is only reported. */
  readonly target?: Target;
  readonly isMet?: boolean;
}

interface Target {
  readonly atLeast?: number;
  readonly atMost?: number;
  /** A better value, which is not required. */
  readonly aim?: number;
}

/** The part of a fixed rate that must be acknowledged for the rate to count as reached. */
const REACHED = 0.98;

/** @returns one summary for each contender, part and rate, in the order of their first rounds */
export function summarize(rounds: readonly Round[]): Summary[] {
  const groups = Map.groupBy(rounds, (round) =>
    [round.part, round.contender, round.rate ?? ''].join(),
  );
  return [...groups.values()].map((group) => {
    const { part, contender, connections, rate } = group[0]!;
    const medianOf = (read: (round: Round) => number | undefined) => {
      const values = group.map(read).filter((value) => value !== undefined);
      return values.length === 0 ? undefined : median(values);
    };
    const throughput = median(group.map((round) => round.throughput));
    return defined({
      part,
      contender,
      connections,
      rate,
      rounds: group.length,
      isReached: rate === undefined ? undefined : throughput >= rate * REACHED,
      throughput,
      p50: medianOf((round) => round.latency?.p50),
      p99: medianOf((round) => round.latency?.p99),
      cpuMicrosecondsPerRequest: medianOf((round) => round.cpuMicrosecondsPerRequest),
    });
  });
}

/**
 * @param sizes rows of the full table, and requests until memory is compared
 * @returns every ratio of the table; a ratio that was not measured has no value
 */
export function ratiosOf(
  rounds: readonly Round[],
  sizes: { readonly rows: number; readonly requests: number },
): Ratio[] {
  const { requests } = sizes;
  const summaries = summarize(rounds);
  const find = (part: Part, contender: ContenderName) =>
    summaries.find((summary) => summary.part === part && summary.contender === contender);
  const speed = (part: Part, ours: ContenderName, theirs: ContenderName) =>
    divide(find(part, ours)?.throughput, find(part, theirs)?.throughput);
  const lone = (theirs: ContenderName) =>
    divide(find('lone', 'ours')?.p50, find('lone', theirs)?.p50);

  const highest = find('speed', 'ours')?.throughput;
  const half = summaries.find(
    (summary) =>
      summary.contender === 'ours' &&
      summary.rate === rateOf(highest ?? 0, 0.5) &&
      summary.isReached === true,
  );
  return [
    ratio('1', 'requests/s, one process / Fastify + pg', speed('speed', 'ours', 'fastify'), {
      atLeast: 1,
      aim: 1.25,
    }),
    ratio('2', 'requests/s, one process / Express + pg', speed('speed', 'ours', 'express'), {
      atLeast: 1.5,
      aim: 2,
    }),
    ratio(
      '3',
      'requests/s, one process / NestJS + TypeORM save()',
      speed('speed', 'ours', 'nest'),
      {
        atLeast: 6,
      },
    ),
    ratio('4', 'requests/s, one process / node:http echo', speed('speed', 'ours', 'echo'), {
      atLeast: 0.35,
    }),
    ratio(
      '5',
      'requests/s, four processes / Postgres itself (pgbench)',
      speed('processes', 'oursInFour', 'postgres'),
      { atLeast: 0.6, aim: 1 },
    ),
    ratio(
      '6',
      `requests/s, on ${count(sizes.rows)} rows / on an empty table`,
      speed('table', 'oursOnFull', 'ours'),
      {
        atLeast: 0.85,
      },
    ),
    ratio('7', 'p99 / p50 at half the highest load', divide(half?.p99, half?.p50), { atMost: 5 }),
    ratio(
      '8',
      `resident memory, after ${count(requests)} requests / after ${count(requests / 10)}`,
      memoryRatio(rounds, requests),
      { atMost: 1.1 },
    ),
    ratio('9', 'p50 of a lone request / with one plain INSERT', lone('unbatched'), {
      atMost: 1.1,
    }),
    ratio(
      '10',
      'requests/s, one process on Citus / Citus itself (pgbench)',
      speed('shards', 'oursOnShards', 'citus'),
      { atLeast: 0.6 },
    ),
    ratio('', 'p50 of a lone request / Fastify + pg', lone('fastify')),
  ];
}

/** @returns the rate that is a fraction of the highest load */
export function rateOf(highest: number, fraction: number): number {
  return Math.round(highest * fraction);
}

/**
 * Memory varies with the garbage collector, so both values are medians over a tenth of the requests: those after the first
 * tenth, and those after all.
 */
function memoryRatio(rounds: readonly Round[], requests: number): number | undefined {
  const early: number[] = [];
  const late: number[] = [];
  let sent = 0;
  for (const round of rounds) {
    if (round.part !== 'memory' || round.residentBytes === undefined) continue;
    sent += round.acknowledged;
    if (sent >= requests / 10 && (sent < requests / 5 || early.length === 0)) {
      early.push(round.residentBytes);
    }
    if (sent >= requests) late.push(round.residentBytes);
  }
  return late.length === 0 ? undefined : divide(median(late), median(early));
}

function ratio(
  row: string,
  description: string,
  value: number | undefined,
  target?: Target,
): Ratio {
  const isMet =
    value === undefined || target === undefined
      ? undefined
      : value >= (target.atLeast ?? -Infinity) && value <= (target.atMost ?? Infinity);
  return defined({ row, description, value, target, isMet });
}

function divide(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined || b === 0 ? undefined : a / b;
}

function count(value: number): string {
  return value.toLocaleString('en');
}

type Defined<Values> = { [Key in keyof Values]: Exclude<Values[Key], undefined> };

/** Leaves out members that are undefined. */
function defined<Values extends object>(values: Values): Defined<Values> {
  return Object.fromEntries(
    Object.entries(values).filter(([, value]) => value !== undefined),
  ) as Defined<Values>;
}
