// For the person who waits for a load.

import { count, formatNumber, ProgressBar, type Progress } from '../progress-bar.js';
import type { PlantLine } from './plant-lines.js';
import type { Streams } from '../streams.js';

/** A longer time without a response is an outage, which says nothing about the time left. */
const MAX_GAP_MS = 2000;

export class LoadProgress implements Progress {
  stored = 0;
  refused = 0;
  /** The number of the last line that was read. */
  line = 0;
  /** The reason for the present pause; empty while plants are sent. */
  waitingFor = '';
  private end = 0;
  private activeMs = 0;
  private readonly startedAt = performance.now();
  private respondedAt = this.startedAt;
  private readonly bar: ProgressBar;

  /** @param size of the file in bytes; undefined if it is not known */
  constructor(
    stderr: Streams['stderr'],
    private readonly size: number | undefined,
  ) {
    this.bar = new ProgressBar(stderr, this);
  }

  get summary(): string {
    const seconds = ((performance.now() - this.startedAt) / 1000).toFixed(1);
    return `${count(this.stored, 'plant')} stored, ${count(this.refused, 'line')} refused, in ${seconds} s`;
  }

  /** How much of the file was read. */
  get share(): number | undefined {
    return this.size === undefined ? undefined : Math.min(1, this.end / this.size);
  }

  get counts(): string[] {
    return [`${formatNumber(this.stored)} stored`, `${formatNumber(this.refused)} refused`];
  }

  get done(): number {
    return this.stored + this.refused;
  }

  /** Without outages. */
  get seconds(): number {
    return this.activeMs / 1000;
  }

  /** The plant was read, and is sent next. */
  reached({ line, end }: PlantLine): void {
    this.line = line;
    this.end = end;
  }

  /** The plant was stored or refused. */
  settled(outcome: 'stored' | 'refused'): void {
    this[outcome]++;
    const now = performance.now();
    this.activeMs += Math.min(MAX_GAP_MS, now - this.respondedAt);
    this.respondedAt = now;
  }

  /** Shows the final count in the bar, then ends the bar. */
  stop(): void {
    this.waitingFor = '';
    this.bar.stop();
  }
}
