import type { Writable } from 'node:stream';
import cliProgress from 'cli-progress';
import type { PlantLine } from './plant-lines.js';

const { Format, SingleBar } = cliProgress;

/** Between two lines, where standard error is no terminal. */
const LINE_INTERVAL_MS = 5000;

/** A progress bar on a terminal, and a line now and then anywhere else. */
export class LoadProgress {
  stored = 0;
  refused = 0;
  /** The number of the last line that was read. */
  line = 0;
  private end = 0;
  /** Why the service is waited for; empty if it is not. */
  waitingFor = '';
  private readonly startedAt = performance.now();
  private readonly bar: cliProgress.SingleBar;
  private readonly timer: NodeJS.Timeout | undefined;

  /** @param size of the file in bytes; undefined if it is not known */
  constructor(
    stderr: Writable & { readonly isTTY?: boolean },
    private readonly size: number | undefined,
  ) {
    this.bar = new SingleBar({
      stream: stderr,
      clearOnComplete: true,
      etaAsynchronousUpdate: true,
      // The last ten seconds, because a terminal is updated ten times a second.
      etaBuffer: 100,
      barsize: 20,
      format: (options, { progress, eta }) => {
        if (size === undefined) return this.text;
        const left = Number.isFinite(eta) ? `, ${Format.TimeFormat(eta, options, 1)} left` : '';
        return `${Format.BarFormat(progress, options)} ${this.text}${left}`;
      },
    });
    if (stderr.isTTY === true) {
      this.bar.start(size ?? 0, 0);
    } else {
      this.timer = setInterval(() => stderr.write(`${this.text}\n`), LINE_INTERVAL_MS);
    }
  }

  get summary(): string {
    const seconds = this.seconds.toFixed(1);
    return `${format(this.stored)} plants stored, ${format(this.refused)} lines refused, in ${seconds} s`;
  }

  /** The plant was read, and is sent next. */
  reached({ line, end }: PlantLine): void {
    this.line = line;
    this.end = end;
    this.bar.update(end);
  }

  stop(): void {
    clearInterval(this.timer);
    this.bar.stop();
  }

  private get seconds(): number {
    return (performance.now() - this.startedAt) / 1000;
  }

  private get text(): string {
    const rate = (this.stored + this.refused) / this.seconds;
    const parts = [`${format(this.stored)} stored`, `${format(this.refused)} refused`];
    parts.push(`${format(rate)} a second`);
    if (this.size) parts.push(`${Math.floor((100 * this.end) / this.size)} % read`);
    if (this.waitingFor !== '') parts.push(`waiting: ${this.waitingFor}`);
    return parts.join(', ');
  }
}

const format = (count: number) => Math.round(count).toLocaleString('en');
