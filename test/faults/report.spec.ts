import { describe, expect, it } from '@jest/globals';
import { History, type SentRequest } from './history.js';
import { formatReport } from './output.js';
import type { Kind } from './plan.js';
import { createReport, type Report } from './report.js';

const FACTS = {
  startedAt: '2026-11-21T12:00:00.000Z',
  rig: 'server',
  seed: 7,
  environment: { patroni: 'patroni <3', postgres: 'PostgreSQL 15', cores: '2', commit: 'abc' },
  settings: {},
  duration: 20,
  leftOut: [],
};

const STORED = [{ id: '1', name: 'a' }];

const sent = (outcome: number, expected = [200], id = '1'): SentRequest => ({
  id,
  name: 'a',
  outcome,
  expected,
  sentAt: 5,
  endedAt: 6.5,
});

function historyOf(label: string, all: readonly SentRequest[], acknowledgedAt = [9]): History {
  const history = new History(label, () => 0);
  history.sent.push(...all);
  history.acknowledgedAt.push(...acknowledgedAt);
  return history;
}

function reportOn(
  all: readonly SentRequest[],
  kind: Kind = 'kill-postgres',
  rows = STORED,
): Report {
  const losesConnections = kind === 'kill-service';
  const fault = {
    kind,
    description: 'killed',
    losesConnections,
    at: 4,
    takenBackAt: 7,
    recoveredAt: 8,
  };
  return createReport(FACTS, [fault], [historyOf('Plant Store', all)], rows, []);
}

describe('the result is clean when', () => {
  it('everything that was acknowledged is stored', () => {
    const report = reportOn([sent(200)]);
    expect(report).toMatchObject({ kills: 1, missing: 0, problems: [] });
    expect(formatReport(report)).toContain('Result: clean (seed 7, commit abc).');
  });

  it.each([50300, 50301])('a plant was refused with %s', (outcome) => {
    expect(reportOn([sent(200), sent(outcome)]).problems).toEqual([]);
  });

  it('a connection was lost by a fault that may cost it', () => {
    expect(reportOn([sent(200), sent(0)], 'kill-service').problems).toEqual([]);
  });

  it('a plain client failed, for which nothing is promised', () => {
    const failed = { ...sent(0, [200, 0]), reason: '57P01' };
    const report = reportOn([sent(200), failed], 'kill');
    expect(report).toMatchObject({ problems: [], kills: 1 });
    expect(report.targets[0]!.outcomes).toEqual({ '200': 1, '57P01': 1 });
  });
});

describe('the result is not clean when', () => {
  it('an acknowledged plant is missing', () => {
    expect(reportOn([sent(200)], 'kill-postgres', [])).toMatchObject({
      result: 'not clean',
      missing: 1,
      problems: ['1: 200, but not stored'],
    });
  });

  it('a row is not what was sent', () => {
    const report = reportOn([sent(200)], 'kill', [{ id: '1', name: 'b' }]);
    expect(report.targets[0]).toMatchObject({ missing: 0, wrong: 1 });
    expect(report.problems).toEqual([
      '1: 200, but not stored',
      '1: stored, but no request can have stored it',
    ]);
  });

  it('a connection was lost by another fault', () => {
    expect(reportOn([sent(200), sent(0)], 'kill-postgres').problems).toEqual([
      'Plant Store, 1: after 6.5 s, instead of 200: a lost connection',
    ]);
  });

  it.each([50000, 50302, 40800, 42900, 40006, -1])(
    'the outcome is %s, also after a kill of the service',
    (outcome) => {
      const all = [sent(200), sent(outcome, [200], '2')];
      expect(reportOn(all, 'kill-service').problems).not.toEqual([]);
    },
  );

  it('a response is not as the document says, and the reason is reported', () => {
    const undocumented = { ...sent(-1, [200, 40006], '2'), reason: 'the header X is missing' };
    expect(reportOn([sent(200), undocumented]).problems).toEqual([
      'Plant Store, 2: after 6.5 s, instead of 200 or 40006: the header X is missing',
    ]);
  });

  it('a plant that must be refused gets 200', () => {
    expect(reportOn([sent(200, [40005])]).problems).toHaveLength(1);
  });

  it('one of several services acknowledged nothing', () => {
    const histories = [historyOf('busy', [sent(200)]), historyOf('silent', [], [])];
    expect(createReport(FACTS, [], histories, STORED, []).problems).toEqual([
      'silent: no plant was acknowledged',
    ]);
  });

  it('something else went wrong during the run', () => {
    const report = createReport(FACTS, [], [historyOf('a', [sent(200)])], STORED, ['It ended.']);
    expect(report).toMatchObject({ result: 'not clean', problems: ['It ended.'] });
  });
});

it('requests are counted by outcome, after each fault', () => {
  const later = { ...sent(50300), endedAt: 2.5 };
  const report = reportOn([sent(200), later, sent(50000, [200], '2')]);
  expect(report.faults[0]!.outcomes).toEqual({ 'Plant Store': { '200': 1, '50000': 1 } });
  expect(report.targets[0]).toMatchObject({
    requests: 3,
    acknowledged: 1,
    outcomes: { '200': 1, '50000': 1, '50300': 1 },
    slowestMilliseconds: 1500,
  });
});

it('an outage is the longest time without an acknowledgment after a fault', () => {
  const report = reportOn([sent(200)]);
  expect(report.faults[0]!.outages).toEqual({ 'Plant Store': 11 });
  expect(report.targets[0]!.longestOutage).toBe(11);
  expect(formatReport(report)).toContain('  0:04         11.0  killed\n');
});

it('a long list of problems is printed in part, and complete in the report', () => {
  const report = reportOn(Array.from({ length: 50 }, () => sent(50000)));
  expect(report.problems).toHaveLength(51);
  expect(formatReport(report)).toContain('and 31 more');
  expect(formatReport(report)).toContain('Result: not clean (seed 7, commit abc).');
});
