import { clock, longestGap } from '../setup/model/times.js';
import type { Fault } from './faults.js';
import { compare, type Comparison, type History, type Plant, type Seconds } from './history.js';

/** Clients of one kind, by way of one proxy. */
export interface Target {
  readonly client: keyof typeof CLIENT_NAMES;
  readonly proxy: keyof typeof PROXY_NAMES;
  readonly history: History;
}

export interface FaultRecord {
  readonly fault: Fault;
  readonly description: string;
  /** Seconds since the start of the load. */
  readonly at: number;
}

interface FaultReport extends FaultRecord {
  /** The longest time without an acknowledgment, in seconds, by the label of the clients. */
  readonly outages: Readonly<Record<string, number>>;
}

interface TargetReport extends Comparison {
  readonly label: string;
  readonly acknowledged: number;
  readonly slowestMilliseconds: number;
  /** Requests by status, error or SQLSTATE. */
  readonly details: Readonly<Record<string, number>>;
  readonly seconds: Seconds;
}

export interface Report {
  readonly verdict: 'clean' | 'not clean';
  /** The start of the load. */
  readonly startedAt: string;
  readonly seed: number;
  readonly serverLoginRetry: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Seconds of load. */
  readonly duration: number;
  readonly faults: readonly FaultReport[];
  readonly targets: readonly TargetReport[];
  /** Reasons why the verdict is not clean. */
  readonly problems: readonly string[];
}

const CLIENT_NAMES = { service: 'Plant Store', plain: 'plain client' } as const;
const PROXY_NAMES = { haproxy: 'HAProxy', pgbouncer: 'PgBouncer' } as const;

export function labelOf({ client, proxy }: Pick<Target, 'client' | 'proxy'>): string {
  return `${CLIENT_NAMES[client]} behind ${PROXY_NAMES[proxy]}`;
}

/**
 * @param rows by their ids, as the primary has them at the end
 * @param problems that were found during the run
 */
export function createReport(
  run: Pick<Report, 'startedAt' | 'seed' | 'serverLoginRetry' | 'environment' | 'duration'>,
  faults: readonly FaultRecord[],
  targets: readonly Target[],
  rows: ReadonlyMap<string, Plant>,
  problems: readonly string[],
): Report {
  const reports = targets.map((target) => reportOn(target, rows, run.duration));
  const allProblems = [...problems, ...reports.flatMap(problemsOf)];
  return {
    verdict: allProblems.length === 0 ? 'clean' : 'not clean',
    ...run,
    faults: faults.map((fault, index) => {
      const next = faults[index + 1]?.at ?? run.duration;
      const outages = targets.map((target) => {
        const gap = longestGap(target.history.acknowledgedAt, fault.at, next);
        return [labelOf(target), Math.round(gap * 10) / 10] as const;
      });
      return { ...fault, outages: Object.fromEntries(outages) };
    }),
    targets: reports,
    problems: allProblems,
  };
}

function reportOn(
  target: Target,
  rows: ReadonlyMap<string, Plant>,
  duration: number,
): TargetReport {
  const { history } = target;
  const fill = (counts: readonly number[]) =>
    Array.from({ length: Math.ceil(duration) }, (_, second) => counts[second] ?? 0);
  return {
    label: labelOf(target),
    acknowledged: history.acknowledged.size,
    ...compare(history, rows),
    slowestMilliseconds: Math.round(history.slowestMilliseconds),
    details: history.details,
    seconds: {
      acknowledged: fill(history.seconds.acknowledged),
      refused: fill(history.seconds.refused),
      other: fill(history.seconds.other),
    },
  };
}

function problemsOf({ label, missing, wrong, seconds, acknowledged }: TargetReport): string[] {
  const others = sum(seconds.other);
  return [
    [missing.length, 'acknowledged plants are missing'],
    [wrong.length, 'rows differ from what was sent'],
    [others, 'requests ended with something other than 200 or 503'],
    [acknowledged === 0 ? 1 : 0, 'runs without any acknowledged plant'],
  ].flatMap(([count, what]) => (count === 0 ? [] : [`${label}: ${count} ${what}`]));
}

/** @returns the outages as a table, the counts, and the verdict */
export function formatReport({ faults, targets, problems, seed, verdict }: Report): string {
  const lines = ['Longest time without an acknowledgment, in seconds:', ''];
  const labels = targets.map(({ label }) => label);
  lines.push(['at'.padStart(6), ...labels, ''].join('  '));
  for (const { at, description, outages } of faults) {
    const cells = labels.map((label) => outages[label]!.toFixed(1).padStart(label.length));
    lines.push([clock(at).padStart(6), ...cells, description].join('  '));
  }
  lines.push('');
  for (const { label, acknowledged, missing, wrong, unanswered, seconds, ...rest } of targets) {
    lines.push(
      `${label}: ${acknowledged} acknowledged, ${missing.length} missing, ${wrong.length} wrong, ` +
        `${unanswered} stored without a response, ${sum(seconds.refused)} refused, ` +
        `${sum(seconds.other)} other; slowest ${(rest.slowestMilliseconds / 1000).toFixed(1)} s; ` +
        Object.entries(rest.details)
          .map(([detail, count]) => `${detail}: ${count}`)
          .join(', '),
    );
  }
  lines.push('', ...problems, `Verdict: ${verdict} (seed ${seed}).`);
  return lines.join('\n');
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}
