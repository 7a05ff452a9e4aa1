import type { Writable } from 'node:stream';
import cliProgress from 'cli-progress';
import type { PlantLine } from './plant-lines.js';

const { Format, SingleBar } = cliProgress;

/** Interval of progress lines, if standard error is not a terminal. */
const LINE_INTERVAL_MS = 5000;

const BAR_LENGTH = 10;

/** A narrower terminal has room for the counts only. */
const MIN_WIDTH_FOR_BAR = 60;

/** A longer time without a response is an outage, which says nothing about the time left. */
const MAX_GAP_MS = 2000;

/** A progress bar on a terminal, and a line now and then anywhere else. */
export class LoadProgress {
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
      fps: 4,
      barsize: BAR_LENGTH,
      format: (options, { maxWidth }) => this.format(options, maxWidth),
    });
    if (stderr.isTTY === true) {
      this.bar.start(0, 0);
    } else {
      this.timer = setInterval(() => stderr.write(`${this.parts.join(', ')}\n`), LINE_INTERVAL_MS);
    }
  }

  get summary(): string {
    const seconds = ((performance.now() - this.startedAt) / 1000).toFixed(1);
    return `${count(this.stored, 'plant')} stored, ${count(this.refused, 'line')} refused, in ${seconds} s`;
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
    clearInterval(this.timer);
    this.bar.stop();
  }

  /** How much of the file was read, from 0 to 1; undefined if its size is not known. */
  private get share(): number | undefined {
    return this.size === undefined ? undefined : Math.min(1, this.end / this.size);
  }

  /** The most important parts first. */
  private get parts(): string[] {
    const { share, waitingFor } = this;
    const parts = [`${format(this.stored)} stored`, `${format(this.refused)} refused`];
    if (waitingFor !== '') return [...parts, `waiting: ${waitingFor}`];
    const seconds = this.activeMs / 1000;
    if (share !== undefined && seconds > 1) {
      parts.push(timeLeft((seconds * (1 - share)) / share));
    }
    if (share !== undefined) parts.push(`${Math.floor(100 * share)} % read`);
    if (seconds > 0) parts.push(`${format((this.stored + this.refused) / seconds)} a second`);
    return parts;
  }

  /** Leaves out what a narrow terminal has no room for. */
  private format(options: cliProgress.Options, width: number): string {
    const { parts, share, waitingFor } = this;
    const hasBar = share !== undefined && width >= MIN_WIDTH_FOR_BAR;
    const bar = hasBar ? `${Format.BarFormat(share, options)} ` : '';
    const room = width - bar.length;
    while (waitingFor === '' && parts.join(', ').length > room) parts.pop();
    return bar + parts.join(', ').slice(0, room);
  }
}

const format = (number: number) => Math.round(number).toLocaleString('en');

const timeLeft = (seconds: number) =>
  seconds < 120 ? `${format(seconds)} s left` : `${format(seconds / 60)} min left`;

const count = (number: number, noun: string) =>
  `${format(number)} ${noun}${number === 1 ? '' : 's'}`;
