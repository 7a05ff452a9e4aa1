import { describe, expect, it } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { takeSnapshot, WorkerMetrics } from './worker-metrics.js';

/** What a worker has after that many requests. */
function snapshotOf(requests: number, duration = 1.5): ReturnType<typeof takeSnapshot> {
  const registry = new Registry();
  const registers = [registry];
  new Counter({ name: 'requests_total', help: 'x', labelNames: ['kind'], registers }).inc(
    { kind: 'a' },
    requests,
  );
  new Gauge({ name: 'pending', help: 'x', registers }).set(requests);
  new Gauge({ name: 'lag', help: 'x', aggregator: 'average', registers }).set(requests);
  new Gauge({ name: 'start', help: 'x', aggregator: 'omit', registers }).set(1000 + requests);
  const seconds = new Histogram({ name: 'seconds', help: 'x', buckets: [1, 2], registers });
  for (let i = 0; i < requests; i++) seconds.observe(duration);
  return takeSnapshot(registry);
}

async function valuesOf(metrics: WorkerMetrics): Promise<Record<string, number>> {
  const text = await metrics.text(await snapshotOf(0));
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return Object.fromEntries(
    series.map((line) => {
      const at = line.lastIndexOf(' ');
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

describe('WorkerMetrics', () => {
  it('adds up what all workers measured; of the lag it shows the worst, of the start the first', async () => {
    const metrics = new WorkerMetrics();
    metrics.remember(1, await snapshotOf(3));
    metrics.remember(2, await snapshotOf(5));
    expect(await valuesOf(metrics)).toEqual({
      'requests_total{kind="a"}': 8,
      pending: 8,
      lag: 5,
      start: 1000,
      'seconds_bucket{le="1"}': 0,
      'seconds_bucket{le="2"}': 8,
      'seconds_bucket{le="+Inf"}': 8,
      seconds_sum: 12,
      seconds_count: 8,
    });
  });

  it('takes the newest of each', async () => {
    const metrics = new WorkerMetrics();
    metrics.remember(1, await snapshotOf(3));
    metrics.remember(1, await snapshotOf(4));
    expect(await valuesOf(metrics)).toMatchObject({ 'requests_total{kind="a"}': 4, pending: 4 });
  });

  it('keeps what the dead counted, and forgets how they were', async () => {
    const metrics = new WorkerMetrics();
    for (const worker of [1, 2, 3]) metrics.remember(worker, await snapshotOf(10));
    metrics.bury(1);
    metrics.bury(2);
    metrics.bury(4);
    metrics.remember(5, await snapshotOf(1));
    expect(await valuesOf(metrics)).toMatchObject({
      'requests_total{kind="a"}': 31,
      pending: 11,
      seconds_count: 31,
      'seconds_bucket{le="2"}': 31,
    });
  });

  it('adds fractions up to the same, whoever is dead', async () => {
    const metrics = new WorkerMetrics();
    for (const [worker, seconds] of [0.1, 0.7, 1.3, 0.2].entries()) {
      metrics.remember(worker, await snapshotOf(7, seconds));
    }
    const before = await valuesOf(metrics);
    for (const worker of [2, 0, 3, 1]) {
      metrics.bury(worker);
      expect(await valuesOf(metrics)).toMatchObject({ seconds_sum: before['seconds_sum'] });
    }
  });

  it('survives the way from one process to another', async () => {
    const metrics = new WorkerMetrics();
    const sent = JSON.stringify(await snapshotOf(3));
    metrics.remember(1, JSON.parse(sent) as Awaited<ReturnType<typeof snapshotOf>>);
    metrics.bury(1);
    expect(await valuesOf(metrics)).toMatchObject({ 'seconds_bucket{le="+Inf"}': 3 });
  });
});
