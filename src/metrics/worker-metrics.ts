import { AggregatorRegistry, type Registry } from 'prom-client';

/** A metric as `getMetricsAsJSON` gives it, and as it arrives in another process. */
interface Metric {
  readonly name: string;
  readonly type: string;
  readonly aggregator: string;
  readonly values: readonly { readonly value: number }[];
}

/** All that one process measured. */
export type Snapshot = readonly Metric[];

/** @returns what `registry` holds now */
export async function takeSnapshot(registry: Registry): Promise<Snapshot> {
  // The library declares the type as an enum of numbers; it is a word.
  return (await registry.getMetricsAsJSON()) as unknown as Snapshot;
}

/**
 * Adds up what workers measured. A sum must never fall when a worker dies: Prometheus would take that for a
 * restart, and count all that the others did once more. So what a dead worker counted is kept.
 */
export class WorkerMetrics {
  private readonly living = new Map<number, Snapshot>();
  private dead: Snapshot = [];

  /** @param worker a number that no other worker has, had or will have */
  remember(worker: number, snapshot: Snapshot): void {
    this.living.set(worker, snapshot);
  }

  /** The worker is gone, and with it all but what it counted. */
  bury(worker: number): void {
    const last = this.living.get(worker) ?? [];
    this.living.delete(worker);
    const counted = last.filter(isCounted);
    this.dead = addUp([this.dead, counted]).getMetricsAsArray() as unknown as Snapshot;
  }

  /**
   * @param own what the process measured that adds up
   * @returns the sum, in the text format of Prometheus
   */
  text(own: Snapshot): Promise<string> {
    return addUp([own, this.dead, ...this.living.values()]).metrics();
  }
}

/**
 * What prom-client would show otherwise: an average, in which one worker with a blocked event loop is lost
 * among the others; and no time of start, where that of the first process is meant.
 */
const AGGREGATORS: Readonly<Record<string, string>> = { average: 'max', omit: 'min' };

/**
 * About a millionth. Multiples of it add up exactly, in any order. Other fractions would leave the sum a hair
 * smaller when a worker dies and the order changes, which is a restart for Prometheus, too.
 */
const GRAIN = 2 ** -20;

function isCounted({ type }: Metric): boolean {
  return type === 'counter' || type === 'histogram';
}

function toGrains(metric: Metric): Metric {
  const values = metric.values.map((it) => ({
    ...it,
    value: Math.floor(it.value / GRAIN) * GRAIN,
  }));
  return { ...metric, values };
}

function addUp(snapshots: readonly Snapshot[]): Registry {
  return AggregatorRegistry.aggregate(
    snapshots.map((metrics) =>
      metrics.map((metric) => ({
        ...(isCounted(metric) ? toGrains(metric) : metric),
        aggregator: AGGREGATORS[metric.aggregator] ?? metric.aggregator,
      })),
    ),
  );
}
