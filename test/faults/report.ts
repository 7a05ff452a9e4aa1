import { contradictions, type StoredRow } from '../setup/model/history.js';
import { longestGap } from '../setup/model/times.js';
import type { Load, Sent } from './load.js';
import { isKill, type Kind } from './plan.js';

/** Not stored, and to be sent again: the database is unavailable, or there is too much work. */
const UNAVAILABLE = [50300, 50301];

/** No other fault may cost a client its connection. */
const LOSES_CONNECTIONS: readonly Kind[] = ['kill-service', 'kill-both', 'reset-clients'];

/** Only so many problems are printed; the file has all of them. */
const MAX_PRINTED = 20;

/** Times are seconds since the start of the load. */
export interface FaultRecord {
  readonly kind: Kind;
  readonly description: string;
  readonly at: number;
  /** When it was taken back. */
  readonly takenBackAt: number;
  /** When plants were acknowledged again. */
  readonly recoveredAt: number;
}

interface FaultReport extends FaultRecord {
  /** The longest time without an acknowledgment until the next fault, in seconds. */
  readonly outage: number;
  /** Requests that ended until the next fault, by outcome; 0 is a connection that was lost. */
  readonly outcomes: Readonly<Record<string, number>>;
}

export interface Report {
  readonly verdict: 'clean' | 'not clean';
  readonly startedAt: string;
  readonly seed: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Settings of Postgres that differ. */
  readonly settings: Readonly<Record<string, string>>;
  /** Seconds of load. */
  readonly duration: number;
  readonly kills: number;
  readonly requests: number;
  readonly acknowledged: number;
  /** Ids that were acknowledged, and are not stored. */
  readonly missing: number;
  readonly longestOutage: number;
  readonly outcomes: Readonly<Record<string, number>>;
  readonly faults: readonly FaultReport[];
  /** Faults that this machine does not allow, and the reason. */
  readonly leftOut: readonly string[];
  /** Reasons why the verdict is not clean. */
  readonly problems: readonly string[];
}

type Facts = Pick<
  Report,
  'startedAt' | 'seed' | 'environment' | 'settings' | 'duration' | 'leftOut'
>;

/**
 * @param rows as the database has them at the end
 * @param problems that were found during the run
 */
export function createReport(
  facts: Facts,
  faults: readonly FaultRecord[],
  { history, acknowledgedAt }: Pick<Load, 'history' | 'acknowledgedAt'>,
  rows: readonly StoredRow[],
  problems: readonly string[],
): Report {
  const stored = new Set(rows.map(({ id }) => id));
  const acknowledged = history.filter(({ outcome }) => outcome === 200);
  const missing = new Set(acknowledged.map(({ id }) => id).filter((id) => !stored.has(id)));
  const found = [
    ...contradictions(history, rows),
    ...history.flatMap((sent) => wrong(sent, faults)),
  ];
  const allProblems = [...problems, ...found];
  if (acknowledged.length === 0) allProblems.push('no plant was acknowledged');
  const reports = faults.map((fault, index) => {
    const next = faults[index + 1]?.at ?? facts.duration;
    const outage = round(longestGap(acknowledgedAt, fault.at, next));
    const ended = history.filter(({ endedAt }) => endedAt >= fault.at && endedAt < next);
    return { ...fault, outage, outcomes: countOutcomes(ended) };
  });
  return {
    verdict: allProblems.length === 0 ? 'clean' : 'not clean',
    ...facts,
    kills: faults.filter(({ kind }) => isKill(kind)).length,
    requests: history.length,
    acknowledged: acknowledged.length,
    missing: missing.size,
    longestOutage: Math.max(0, ...reports.map(({ outage }) => outage)),
    outcomes: countOutcomes(history),
    faults: reports,
    problems: allProblems,
  };
}

/** @returns a sentence about an outcome that no fault explains; otherwise nothing */
function wrong(
  { id, outcome, problem, expected, sentAt, endedAt }: Sent,
  faults: readonly FaultRecord[],
): string[] {
  if (expected.includes(outcome) || UNAVAILABLE.includes(outcome)) return [];
  const isExplained = faults.some(
    ({ kind, at, recoveredAt }) =>
      LOSES_CONNECTIONS.includes(kind) && endedAt >= at && sentAt <= recoveredAt,
  );
  if (outcome === 0 && isExplained) return [];
  const name = outcome === 0 ? 'a lost connection' : (problem ?? outcome);
  return [`${id}: after ${round(endedAt)} s, instead of ${expected.join(' or ')}: ${name}`];
}

function countOutcomes(history: readonly Sent[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome } of history) counts[outcome] = (counts[outcome] ?? 0) + 1;
  return counts;
}

/** @returns tenths of seconds */
function round(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}

/** @returns the result in a few lines, and the verdict */
export function formatReport(report: Report): string {
  const { faults, requests, acknowledged, missing, kills, longestOutage } = report;
  const outcomes = Object.entries(report.outcomes).map(
    ([outcome, count]) => `${outcome}: ${count}`,
  );
  const unprinted = report.problems.length - MAX_PRINTED;
  return [
    `${faults.length} faults, ${kills} of them kills, in ${Math.round(report.duration)} s.`,
    `${requests} requests, ${acknowledged} acknowledged, ${missing} missing; longest time without an acknowledgment ${longestOutage} s.`,
    `Outcomes (0: connection lost): ${outcomes.join(', ')}.`,
    ...report.leftOut,
    ...report.problems.slice(0, MAX_PRINTED),
    ...(unprinted > 0 ? [`and ${unprinted} more`] : []),
    `Verdict: ${report.verdict} (seed ${report.seed}, commit ${report.environment['commit']}).`,
  ].join('\n');
}
