// A run with faults must not be clean when a plant is lost, or when its client got a response that no fault explains.

import { expect, it } from '@jest/globals';
import { History, type SentRequest } from './history.js';
import type { Kind } from './plan.js';
import { createReport, type Report } from './report.js';

const FACTS = {
  startedAt: '2026-11-21T12:00:00.000Z',
  rig: 'server',
  seed: 7,
  environment: {},
  settings: {},
  duration: 20,
  leftOut: [],
};

/** An acknowledged plant, and how it is stored. */
const ACKNOWLEDGED: SentRequest = {
  ...{ id: '9007199254740993', name: 'a', outcome: 200, expected: [200], sentAt: 5, endedAt: 6.5 },
};
const STORED = [{ id: '9007199254740993', name: 'a' }];

/** Another plant, of which nothing is stored. */
const other = (outcome: number, expected = [200]) => ({
  ...ACKNOWLEDGED,
  id: '2',
  outcome,
  expected,
});

interface Run {
  readonly kind?: Kind;
  readonly rows?: typeof STORED;
  readonly problems?: readonly string[];
}

function reportOn(
  sent: readonly SentRequest[],
  { kind = 'kill-postgres', rows = STORED, problems = [] }: Run = {},
): Report {
  const history = new History('Plant Store', () => 0);
  history.sent.push(...sent);
  const losesConnections = kind === 'kill-service';
  const times = { at: 4, takenBackAt: 7, recoveredAt: 8 };
  const fault = { kind, description: 'killed', losesConnections, ...times };
  return createReport(FACTS, [fault], [history], rows, problems);
}

it.each<[string, SentRequest[], Run]>([
  ['everything acknowledged is stored', [ACKNOWLEDGED], {}],
  ['the database was away, or busy', [ACKNOWLEDGED, other(50300), other(50301)], {}],
  ['a fault cost a connection', [ACKNOWLEDGED, other(0)], { kind: 'kill-service' }],
])('the result is clean when %s', (_what, sent, more) => {
  expect(reportOn(sent, more)).toMatchObject({ result: 'clean', missing: 0, problems: [] });
});

it.each<[string, SentRequest[], Run]>([
  ['an acknowledged plant is missing', [ACKNOWLEDGED], { rows: [] }],
  ['its name is another one', [ACKNOWLEDGED], { rows: [{ ...STORED[0]!, name: 'b' }] }],
  ['its id differs in a digit', [ACKNOWLEDGED], { rows: [{ id: '9007199254740992', name: 'a' }] }],
  ['two plants won one id', [ACKNOWLEDGED, { ...ACKNOWLEDGED, name: 'b' }], {}],
  ['a row is of no request', [ACKNOWLEDGED], { rows: [...STORED, { id: '2', name: 'a' }] }],
  ['a plant lost its id to none', [ACKNOWLEDGED, other(40006, [200, 40006])], {}],
  ['a fault cost a connection that may not', [ACKNOWLEDGED, other(0)], {}],
  ['the service failed', [ACKNOWLEDGED, other(50000)], { kind: 'kill-service' }],
  ['a response was not as documented', [ACKNOWLEDGED, other(-1)], {}],
  ['a wrong plant was accepted', [{ ...ACKNOWLEDGED, expected: [40005] }], {}],
  ['nothing was acknowledged', [other(50300)], { rows: [] }],
  ['the run itself found a problem', [ACKNOWLEDGED], { problems: ['It ended.'] }],
])('the result is not clean when %s', (_what, sent, more) => {
  expect(reportOn(sent, more).result).toBe('not clean');
});

it('a missing plant is counted, and named', () => {
  expect(reportOn([ACKNOWLEDGED], { rows: [] })).toMatchObject({
    missing: 1,
    problems: ['9007199254740993: 200, but not stored'],
  });
});
