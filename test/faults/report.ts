import type { StoredPlant } from '../setup/database/stored-plants.js';
import { contradictions } from '../setup/model/contradictions.js';
import { compare, type Comparison, type History, type SentRequest } from './history.js';
import { isKill, type Kind } from './plan.js';
import { longestGap } from './times.js';

/** Not stored, and to be sent again: the database is unavailable, or there is too much work. */
const UNAVAILABLE = [50300, 50301];

/** Times are seconds since the start of the load. */
export interface FaultRecord {
  readonly kind: Kind;
  readonly description: string;
  /** Whether it may cost a client its connection. */
  readonly losesConnections: boolean;
  readonly at: number;
  /** When it was taken back. */
  readonly takenBackAt: number;
  /** When plants were acknowledged again. */
  readonly recoveredAt: number;
}

interface FaultReport extends FaultRecord {
  /** The longest time without an acknowledgment until the next fault, in seconds, by the label of the clients. */
  readonly outages: Readonly<Record<string, number>>;
  /** Requests that ended until the next fault, by outcome, by the label of the clients. */
  readonly outcomes: Readonly<Record<string, Readonly<Record<string, number>>>>;
}

/** What was sent to one service, or by one plain client. */
interface TargetReport extends Comparison {
  readonly label: string;
  readonly requests: number;
  readonly acknowledged: number;
  readonly longestOutage: number;
  readonly slowestMilliseconds: number;
  readonly outcomes: Readonly<Record<string, number>>;
}

export interface Report {
  readonly result: 'clean' | 'not clean';
  /** The start of the load. */
  readonly startedAt: string;
  readonly rig: string;
  readonly seed: number;
  readonly environment: Readonly<Record<string, string>>;
  /** Settings of the rig that differ. */
  readonly settings: Readonly<Record<string, string>>;
  /** Seconds of load. */
  readonly duration: number;
  readonly kills: number;
  /** Ids that were acknowledged, and are not stored. */
  readonly missing: number;
  readonly faults: readonly FaultReport[];
  readonly targets: readonly TargetReport[];
  /** Reasons why faults cannot be caused. */
  readonly leftOut: readonly string[];
  /** Reasons why the result is not clean. */
  readonly problems: readonly string[];
}

type Facts = Omit<Report, 'result' | 'kills' | 'missing' | 'faults' | 'targets' | 'problems'>;

/**
 * @param rows as the database has them at the end
 * @param problems that were found during the run
 */
export function createReport(
  facts: Facts,
  faults: readonly FaultRecord[],
  histories: readonly History[],
  rows: readonly StoredPlant[],
  problems: readonly string[],
): Report {
  const allProblems = [
    ...problems,
    ...contradictions(
      histories.flatMap(({ sent }) => sent),
      rows,
    ),
    ...histories.flatMap((history) => problemsOf(history, faults)),
  ];
  const reports = faults.map((fault, index) =>
    reportOnFault(fault, faults[index + 1]?.at ?? facts.duration, histories),
  );
  const targets = histories.map((history) => reportOnTarget(history, reports, rows));
  return {
    result: allProblems.length === 0 ? 'clean' : 'not clean',
    ...facts,
    kills: faults.filter(({ kind }) => isKill(kind)).length,
    missing: targets.reduce((sum, target) => sum + target.missing, 0),
    faults: reports,
    targets,
    problems: allProblems,
  };
}

/** @param until the time of the next fault */
function reportOnFault(
  fault: FaultRecord,
  until: number,
  histories: readonly History[],
): FaultReport {
  const byLabel = <Value>(valueOf: (history: History) => Value) =>
    Object.fromEntries(histories.map((history) => [history.label, valueOf(history)]));
  return {
    ...fault,
    outages: byLabel((history) => round(longestGap(history.acknowledgedAt, fault.at, until))),
    outcomes: byLabel(({ sent }) =>
      countOutcomes(sent.filter(({ endedAt }) => endedAt >= fault.at && endedAt < until)),
    ),
  };
}

function reportOnTarget(
  { label, sent, acknowledgedAt }: History,
  faults: readonly FaultReport[],
  rows: readonly StoredPlant[],
): TargetReport {
  // Not Math.max with all of them: a long run has more requests than a function takes arguments.
  const slowest = sent.reduce((most, each) => Math.max(most, each.endedAt - each.sentAt), 0);
  return {
    label,
    requests: sent.length,
    acknowledged: acknowledgedAt.length,
    ...compare(sent, rows),
    longestOutage: Math.max(0, ...faults.map(({ outages }) => outages[label]!)),
    slowestMilliseconds: Math.round(slowest * 1000),
    outcomes: countOutcomes(sent),
  };
}

/** @returns a sentence for each outcome that no fault explains, and one if no plant was acknowledged */
function problemsOf({ label, sent }: History, faults: readonly FaultRecord[]): string[] {
  const problems = sent
    .filter((each) => !isExplained(each, faults))
    .map(({ id, outcome, reason, expected, endedAt }) => {
      const name = outcome === 0 ? 'a lost connection' : (reason ?? outcome);
      return `${label}, ${id}: after ${round(endedAt)} s, instead of ${expected.join(' or ')}: ${name}`;
    });
  const isAcknowledged = sent.some(({ outcome }) => outcome === 200);
  return isAcknowledged ? problems : [...problems, `${label}: no plant was acknowledged`];
}

/** Whether a fault explains an outcome that was not expected, or nothing is promised to the client. */
function isExplained(
  { outcome, expected, sentAt, endedAt }: SentRequest,
  faults: readonly FaultRecord[],
): boolean {
  if (expected.includes(outcome) || UNAVAILABLE.includes(outcome)) return true;
  if (outcome !== 0) return false;
  return faults.some(
    ({ losesConnections, at, recoveredAt }) =>
      losesConnections && endedAt >= at && sentAt <= recoveredAt,
  );
}

/** @returns requests by outcome; those of which nothing is known by the reason */
function countOutcomes(sent: readonly SentRequest[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { outcome, reason } of sent) {
    const name = outcome === 0 ? (reason ?? 0) : outcome;
    counts[name] = (counts[name] ?? 0) + 1;
  }
  return counts;
}

/** @returns tenths of seconds */
function round(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
