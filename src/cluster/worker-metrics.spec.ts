import { describe, expect, it } from '@jest/globals';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { takeSnapshot, WorkerMetrics } from './worker-metrics.js';

/** The metrics of a worker after a number of requests. */
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
  it('adds up the metrics of all workers, but takes the largest lag and the earliest start', async () => {
    const metrics = new WorkerMetrics();
    metrics.update(1, await snapshotOf(3));
    metrics.update(2, await snapshotOf(5));
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

  it('counts the latest snapshot of each worker', async () => {
    const metrics = new WorkerMetrics();
    metrics.update(1, await snapshotOf(3));
    metrics.update(1, await snapshotOf(4));
    expect(await valuesOf(metrics)).toMatchObject({ 'requests_total{kind="a"}': 4, pending: 4 });
  });

  it('keeps the counters of workers that ended, and drops their gauges', async () => {
    const metrics = new WorkerMetrics();
    for (const worker of [1, 2, 3]) metrics.update(worker, await snapshotOf(10));
    metrics.end(1);
    metrics.end(2);
    metrics.end(4);
    metrics.update(2, await snapshotOf(1));
    expect(await valuesOf(metrics)).toMatchObject({
      'requests_total{kind="a"}': 31,
      pending: 11,
      seconds_count: 31,
      'seconds_bucket{le="2"}': 31,
    });
    metrics.end(2);
    metrics.update(2, await snapshotOf(5));
    expect(await valuesOf(metrics)).toMatchObject({ 'requests_total{kind="a"}': 36, pending: 15 });
  });

  it('shows the same sum of fractions in whatever order workers end and are replaced', async () => {
    const metrics = new WorkerMetrics();
    for (const [worker, seconds] of [0.1, 0.7, 1.3, 0.2].entries()) {
      metrics.update(worker, await snapshotOf(7, seconds));
    }
    const before = await valuesOf(metrics);
    for (const worker of [2, 0, 3, 1]) {
      metrics.end(worker);
      expect(await valuesOf(metrics)).toMatchObject({ seconds_sum: before['seconds_sum'] });
      metrics.update(worker, await snapshotOf(0));
      expect(await valuesOf(metrics)).toMatchObject({ seconds_sum: before['seconds_sum'] });
    }
  });

  it('accepts snapshots that were sent as JSON', async () => {
    const metrics = new WorkerMetrics();
    const sent = JSON.stringify(await snapshotOf(3));
    metrics.update(1, JSON.parse(sent) as Awaited<ReturnType<typeof snapshotOf>>);
    metrics.end(1);
    expect(await valuesOf(metrics)).toMatchObject({ 'seconds_bucket{le="+Inf"}': 3 });
  });
});
