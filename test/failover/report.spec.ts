import { describe, expect, it } from '@jest/globals';
import { drawChart } from './chart.js';
import { History, plantOf, type Outcome } from './history.js';
import { createReport, formatReport, type Report, type Target } from './report.js';

const FACTS = {
  startedAt: '2026-11-21T12:00:00.000Z',
  seed: 7,
  serverLoginRetry: 1,
  environment: { patroni: 'patroni <3', postgres: 'postgres 15', cores: '2', commit: 'abc' },
  duration: 20,
};

function reportOn(outcome: Outcome, stored = ['1', '2'], rowOf = plantOf): Report {
  const history = new History();
  history.record('1', { kind: 'acknowledged', detail: '200' }, 1, 2);
  history.record('2', outcome, 2, 14);
  const target: Target = { client: 'service', proxy: 'haproxy', history };
  const rows = new Map(stored.map((id) => [id, rowOf(id)]));
  const fault = { fault: 'kill', description: 'pg1 killed', at: 4 } as const;
  return createReport(FACTS, [fault], [target], rows, []);
}

describe('the verdict', () => {
  it('is clean when everything acknowledged is stored, and the rest was refused', () => {
    const report = reportOn({ kind: 'refused', detail: '50300' });
    expect(report.problems).toEqual([]);
    expect(report.targets[0]).toMatchObject({ acknowledged: 1, unanswered: 1 });
    expect(formatReport(report)).toContain('Verdict: clean (seed 7).');
  });

  it('is not clean after any other status', () => {
    const report = reportOn({ kind: 'other', detail: '50000' });
    expect(report.problems).toEqual([
      'Plant Store behind HAProxy: 1 requests ended with something other than 200 or 503',
    ]);
    expect(formatReport(report)).toContain('Verdict: not clean (seed 7).');
  });

  it('is not clean when an acknowledged plant is missing', () => {
    const report = reportOn({ kind: 'refused', detail: '50300' }, ['2']);
    expect(report.problems).toEqual([
      'Plant Store behind HAProxy: 1 acknowledged plants are missing',
    ]);
  });

  it('is not clean when a row is not what was sent', () => {
    const report = reportOn({ kind: 'refused', detail: '50300' }, ['1', '2'], () => plantOf('3'));
    expect(report.problems).toEqual([
      'Plant Store behind HAProxy: 2 rows differ from what was sent',
    ]);
  });
});

it('an outage is the longest time without an acknowledgment', () => {
  const { faults } = reportOn({ kind: 'acknowledged', detail: '200' });
  expect(faults[0]!.outages).toEqual({ 'Plant Store behind HAProxy': 10 });
});

describe('the chart', () => {
  it('shows each outcome that occurred, and the fault', () => {
    const svg = drawChart(reportOn({ kind: 'refused', detail: '50300' }));
    expect(svg.match(/<path [^>]*fill=/g)).toHaveLength(2);
    expect(svg).toContain('>kill</text>');
    expect(svg).toContain('patroni &lt;3');
    expect(svg).not.toMatch(/NaN|undefined/);
  });

  it('can be drawn of a run without a request', () => {
    const target: Target = { client: 'plain', proxy: 'pgbouncer', history: new History() };
    const svg = drawChart(createReport(FACTS, [], [target], new Map(), []));
    expect(svg).not.toMatch(/NaN|undefined/);
  });
});
