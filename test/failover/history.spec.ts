import { describe, expect, it } from '@jest/globals';
import { compare, History, plantOf, type Outcome } from './history.js';

const ACKNOWLEDGED: Outcome = { kind: 'acknowledged', detail: '200' };
const REFUSED: Outcome = { kind: 'refused', detail: '50300' };

describe('a history', () => {
  it('counts requests in the second of their end', () => {
    const history = new History();
    history.record('1', ACKNOWLEDGED, 0.1, 0.2);
    history.record('2', REFUSED, 0.5, 2.0);
    expect(history.seconds.acknowledged[0]).toBe(1);
    expect(history.seconds.refused[2]).toBe(1);
    expect(history.details).toEqual({ '200': 1, '50300': 1 });
    expect(history.slowestMilliseconds).toBe(1500);
  });

  it('finds plants that are missing, wrong, or stored without a response', () => {
    const history = new History();
    for (const id of ['1', '2', '3']) history.record(id, ACKNOWLEDGED, 0, 1);
    for (const id of ['4', '5', '6']) history.record(id, REFUSED, 0, 1);
    history.record('6', ACKNOWLEDGED, 1, 2);
    const rows = [plantOf('1'), { ...plantOf('2'), tag: null }, plantOf('4'), plantOf('6')];
    expect(compare(history, new Map(rows.map((row) => [row.id, row])))).toEqual({
      missing: ['3'],
      wrong: ['2'],
      unanswered: 1,
    });
  });
});
