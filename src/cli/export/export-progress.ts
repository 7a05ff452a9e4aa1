// For the person who waits for an export.

import { count, formatNumber, ProgressBar, type Progress } from '../progress-bar.js';
import { RowCounter } from './row-counter.js';
import type { Streams } from '../streams.js';

export class ExportProgress implements Progress {
  private readonly startedAt = performance.now();
  private readonly counter: RowCounter;
  private readonly bar: ProgressBar | undefined;

  /**
   * @param stderr undefined: nothing is shown
   * @param isCsv the format of the data
   * @param total the number of plants; undefined if it is not known
   */
  constructor(
    stderr: Streams['stderr'] | undefined,
    isCsv: boolean,
    private readonly total: number | undefined,
  ) {
    this.counter = new RowCounter(isCsv);
    this.bar = stderr && new ProgressBar(stderr, this);
  }

  get summary(): string {
    return `${count(this.done, 'plant')} exported, in ${this.seconds.toFixed(1)} s`;
  }

  get counts(): string[] {
    return [`${formatNumber(this.done)} exported`];
  }

  get share(): number | undefined {
    return this.total === undefined ? undefined : this.done / Math.max(1, this.total);
  }

  /** The header of CSV may not be written yet. */
  get done(): number {
    return Math.max(0, this.counter.count);
  }

  get seconds(): number {
    return (performance.now() - this.startedAt) / 1000;
  }

  /** The data was written. */
  written(data: Uint8Array): void {
    this.counter.add(data);
  }

  /** Shows the final count in the bar, then ends the bar. */
  stop(): void {
    this.bar?.stop();
  }
}
