import { createHistogram } from 'node:perf_hooks';

/** Milliseconds, with a resolution of microseconds. */
export interface Latency {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

/** @throws RangeError for no values */
export function median(values: readonly number[]): number {
  if (values.length === 0) throw new RangeError('There is no median of no values.');
  const sorted = values.toSorted((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Collects the times of single requests. */
export class LatencyRecorder {
  private readonly histogram = createHistogram({ lowest: 1, highest: 600_000_000, figures: 3 });

  /** @param milliseconds from sending a request to the end of its response */
  record(milliseconds: number): void {
    this.histogram.record(Math.max(1, Math.round(milliseconds * 1000)));
  }

  summary(): Latency {
    const percentile = (rank: number) => this.histogram.percentile(rank) / 1000;
    return {
      p50: percentile(50),
      p90: percentile(90),
      p99: percentile(99),
      max: this.histogram.max / 1000,
    };
  }
}
