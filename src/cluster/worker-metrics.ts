import { AggregatorRegistry, type Registry } from 'prom-client';

/** The metrics of one process at one moment. */
export type Snapshot = readonly { readonly type: string; readonly aggregator: string }[];

export async function takeSnapshot(registry: Registry): Promise<Snapshot> {
  // prom-client declares `type` as an enum of numbers, but its values are strings.
  return (await registry.getMetricsAsJSON()) as unknown as Snapshot;
}

/** Adds up the metrics of all workers, including the counters of workers that ended. */
export class WorkerMetrics {
  private readonly latest = new Map<number, Snapshot>();
  private readonly ended = new Map<number, Snapshot>();

  /** @param worker the number of the worker, which its replacement inherits */
  update(worker: number, snapshot: Snapshot): void {
    this.latest.set(worker, snapshot);
  }

  /** Keeps the counters: if a sum fell, Prometheus would assume a restart and count everything again. */
  end(worker: number): void {
    const counters = this.sumOf(worker).filter(
      ({ type }) => type === 'counter' || type === 'histogram',
    );
    this.ended.set(worker, counters);
    this.latest.delete(worker);
  }

  /**
   * @param own metrics of the primary
   * @returns the sum, in the text format of Prometheus
   */
  text(own: Snapshot): Promise<string> {
    const workers = new Set([...this.ended.keys(), ...this.latest.keys()]);
    // Always in the same order: another order rounds fractions differently, and a sum could fall.
    const sums = [...workers].sort((a, b) => a - b).map((worker) => this.sumOf(worker));
    return aggregate([own, ...sums]).metrics();
  }

  private sumOf(worker: number): Snapshot {
    const sum = aggregate([this.ended.get(worker) ?? [], this.latest.get(worker) ?? []]);
    return sum.getMetricsAsArray() as unknown as Snapshot;
  }
}

/** By default, prom-client averages the lags of event loops, which hides a blocked one, and omits the start time. */
const AGGREGATORS: Readonly<Record<string, string>> = { average: 'max', omit: 'min' };

function aggregate(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate(
    snapshots.map((snapshot) =>
      snapshot.map((metric) => ({
        ...metric,
        aggregator: AGGREGATORS[metric.aggregator] ?? metric.aggregator,
      })),
    ),
  );
}
