import { describe, expect, it } from '@jest/globals';
import type { Sent } from './load.js';
import type { Kind } from './plan.js';
import { createReport, formatReport, type Report } from './report.js';

const FACTS = {
  startedAt: '2026-11-21T12:00:00.000Z',
  seed: 7,
  environment: { commit: 'abc' },
  settings: {},
  duration: 20,
  leftOut: [],
};

const STORED = [{ id: '1', name: 'a', tag: null }];

const sent = (outcome: number, expected = [200], id = '1'): Sent => ({
  id,
  name: 'a',
  outcome,
  expected,
  sentAt: 5,
  endedAt: 6,
});

function reportOn(history: readonly Sent[], kind: Kind = 'kill-postgres', rows = STORED): Report {
  const fault = { kind, description: 'killed', at: 4, takenBackAt: 7, recoveredAt: 8 };
  return createReport(FACTS, [fault], { history, acknowledgedAt: [1, 9] }, rows, []);
}

describe('the verdict is clean when', () => {
  it('everything that was acknowledged is stored', () => {
    const report = reportOn([sent(200)]);
    expect(report).toMatchObject({ kills: 1, acknowledged: 1, missing: 0, problems: [] });
    expect(formatReport(report)).toContain('Verdict: clean (seed 7, commit abc).');
  });

  it.each([50300, 50301])('a plant was refused with %s', (outcome) => {
    expect(reportOn([sent(200), sent(outcome)]).problems).toEqual([]);
  });

  it('a connection was lost when the service was killed', () => {
    expect(reportOn([sent(200), sent(0)], 'kill-service').problems).toEqual([]);
  });
});

describe('the verdict is not clean when', () => {
  it('an acknowledged plant is missing', () => {
    expect(reportOn([sent(200)], 'kill-postgres', [])).toMatchObject({
      verdict: 'not clean',
      missing: 1,
      problems: ['1: 200, but not stored'],
    });
  });

  it('a connection was lost when only Postgres was killed', () => {
    expect(reportOn([sent(200), sent(0)]).problems).toHaveLength(1);
  });

  it.each([50000, 40800, 42900, 40006, -1])('the outcome is %s', (outcome) => {
    expect(reportOn([sent(200), sent(outcome, [200], '2')]).problems).not.toEqual([]);
  });

  it('a response is not as the document says, and the reason is reported', () => {
    const undocumented = { ...sent(-1, [200, 40006], '2'), problem: 'the header X is missing' };
    expect(reportOn([sent(200), undocumented]).problems).toEqual([
      '2: after 6 s, instead of 200 or 40006: the header X is missing',
    ]);
  });

  it('a plant that must be refused gets 200', () => {
    expect(reportOn([sent(200, [40005])]).problems).toHaveLength(1);
  });

  it('nothing was acknowledged', () => {
    expect(reportOn([], 'kill-postgres', []).problems).toEqual(['no plant was acknowledged']);
  });
});

it('an outage is the longest time without an acknowledgment after a fault', () => {
  expect(reportOn([sent(200)])).toMatchObject({ longestOutage: 11, faults: [{ outage: 11 }] });
});

it('a long list of problems is printed in part, and complete in the report', () => {
  const report = reportOn(Array.from({ length: 50 }, () => sent(50000)));
  expect(report.problems).toHaveLength(51);
  expect(formatReport(report)).toContain('and 31 more');
});
