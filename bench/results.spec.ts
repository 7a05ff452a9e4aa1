import { describe, expect, it } from '@jest/globals';
import { ratiosOf, summarize, type Round } from './results.js';

const SIZES = { rows: 1000, requests: 1000 };

function round(values: Partial<Round>): Round {
  const throughput = values.throughput ?? 100;
  return {
    part: 'speed',
    contender: 'ours',
    connections: 64,
    acknowledged: throughput,
    failures: {},
    seconds: 1,
    throughput,
    ...values,
  };
}

function valueOf(row: string, rounds: readonly Round[]): number | undefined {
  return ratiosOf(rounds, SIZES).find((ratio) => ratio.row === row)!.value;
}

describe('ratiosOf', () => {
  it('divides medians, so that one bad round changes nothing', () => {
    const rounds = [
      ...[300, 1, 310].map((throughput) => round({ throughput })),
      ...[200, 900, 190].map((throughput) => round({ contender: 'express', throughput })),
    ];
    expect(ratiosOf(rounds, SIZES)[1]).toMatchObject({ row: '2', value: 1.5, isMet: true });
  });

  it('has no value for a ratio that was not measured', () => {
    for (const ratio of ratiosOf([round({})], SIZES)) {
      expect(ratio).not.toHaveProperty('value');
      expect(ratio).not.toHaveProperty('isMet');
    }
  });

  it('marks a target that is missed', () => {
    const rounds = [round({ throughput: 34 }), round({ contender: 'echo', throughput: 100 })];
    expect(ratiosOf(rounds, SIZES)[3]).toMatchObject({ row: '4', value: 0.34, isMet: false });
  });

  it('judges latency at half the highest load, unless that was not reached', () => {
    const latency = { p50: 2, p90: 3, p99: 6, max: 9 };
    const full = round({ throughput: 1000 });
    const half = round({ part: 'rates', rate: 500, throughput: 499, latency });
    expect(valueOf('7', [full, half])).toBe(3);
    expect(valueOf('7', [full, { ...half, throughput: 400 }])).toBeUndefined();
  });

  it('compares memory after all requests with memory after a tenth of them', () => {
    const memory = [10, 20, 30, ...Array<number>(7).fill(99), 40, 60];
    const rounds = memory.map((residentBytes) => round({ part: 'memory', residentBytes }));
    // 100 requests a round: the first one ends at a tenth, the tenth and later ones are beyond the end.
    expect(valueOf('8', rounds)).toBe(60 / 10);
  });
});

describe('summarize', () => {
  it('says whether a rate was reached', () => {
    const rounds = [
      round({ part: 'rates', rate: 100, throughput: 99 }),
      round({ part: 'rates', rate: 200, throughput: 150 }),
    ];
    expect(summarize(rounds).map(({ isReached }) => isReached)).toEqual([true, false]);
  });
});
