import { describe, expect, it } from '@jest/globals';
import { ticks } from '../test/setup/chart/svg.js';
import { drawChart, logTicks } from './chart.js';
import type { Summary } from './results.js';

const SPEED: Summary = {
  part: 'speed',
  contender: 'ours',
  connections: 64,
  rounds: 3,
  throughput: 1234.5,
  p50: 1,
  p99: 20,
};
const RATE: Summary = { ...SPEED, part: 'rates', rate: 600, throughput: 600, isReached: true };

describe('drawChart', () => {
  it('has a bar for each contender, and escapes text', () => {
    const svg = drawChart([SPEED, { ...SPEED, contender: 'echo' }], 'a < b & c');
    expect(svg.match(/<rect/g)).toHaveLength(2);
    expect(svg).toContain('1,235/s, p50 1.0, p99 20 ms');
    expect(svg).toContain('a &lt; b &amp; c');
  });

  it('has a line for each percentile, with the rates that were reached', () => {
    const missed: Summary = { ...RATE, rate: 5000, isReached: false };
    const svg = drawChart([SPEED, RATE, missed], '');
    expect(svg.match(/<polyline/g)).toHaveLength(2);
    expect(svg.match(/<circle/g)).toHaveLength(2);
    expect(svg).not.toContain('NaN');
  });

  it('can be drawn without results', () => {
    expect(drawChart([], '')).not.toContain('NaN');
  });
});

describe('ticks', () => {
  it('are round and reach the highest value', () => {
    expect(ticks(0, 9422)).toEqual([0, 2000, 4000, 6000, 8000, 10000]);
  });

  it('are exact below one on a logarithmic axis', () => {
    expect(logTicks(0.2, 20)).toEqual([0.2, 0.5, 1, 2, 5, 10, 20]);
  });
});
