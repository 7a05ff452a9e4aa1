// For load and export: how far the work is.

import cliProgress from 'cli-progress';
import type { Streams } from './streams.js';

const { Format, SingleBar } = cliProgress;

/** Interval of progress lines, if standard error is not a terminal. */
const LINE_INTERVAL_MS = 5000;

const BAR_LENGTH = 10;

/** A narrower terminal has room for the counts only. */
const MIN_WIDTH_FOR_BAR = 60;

/** The state of the work that a progress bar shows. */
export interface Progress {
  /** Such as `5 stored`, the most important first. */
  readonly counts: readonly string[];
  /** How much of the work is done, from 0 to 1; undefined if that is not known. */
  readonly share: number | undefined;
  /** How many plants are done. */
  readonly done: number;
  /** The time that was worked on them, in seconds. */
  readonly seconds: number;
  /** The reason for the present pause; empty or missing while there is none. */
  readonly waitingFor?: string;
}

/** A progress bar on a terminal, and a line now and then anywhere else. */
export class ProgressBar {
  private readonly bar: cliProgress.SingleBar;
  private readonly timer: NodeJS.Timeout | undefined;

  constructor(stderr: Streams['stderr'], progress: Progress) {
    this.bar = new SingleBar({
      stream: stderr,
      clearOnComplete: true,
      fps: 4,
      barsize: BAR_LENGTH,
      format: (options, { maxWidth }) => format(progress, options, maxWidth),
    });
    if (stderr.isTTY === true) {
      this.bar.start(0, 0);
    } else {
      this.timer = setInterval(
        () => stderr.write(`${partsOf(progress).join(', ')}\n`),
        LINE_INTERVAL_MS,
      );
    }
  }

  /** Shows the final state in the bar, then ends the bar. */
  stop(): void {
    clearInterval(this.timer);
    this.bar.stop();
  }
}

/** @returns the most important parts first */
function partsOf({ counts, share, done, seconds, waitingFor = '' }: Progress): string[] {
  if (waitingFor !== '') return [...counts, `waiting: ${waitingFor}`];
  const parts = [...counts];
  if (share !== undefined && share > 0 && seconds > 1) {
    parts.push(timeLeft((seconds * (1 - share)) / share));
  }
  if (share !== undefined) parts.push(`${Math.floor(100 * share)} %`);
  if (seconds > 0) parts.push(`${formatNumber(done / seconds)} a second`);
  return parts;
}

/** Leaves out the last parts where a terminal is narrow, or cuts the reason for a pause. */
function format(progress: Progress, options: cliProgress.Options, width: number): string {
  const { share, waitingFor = '' } = progress;
  const hasBar = share !== undefined && width >= MIN_WIDTH_FOR_BAR;
  const bar = hasBar ? `${Format.BarFormat(share, options)} ` : '';
  const room = width - bar.length;
  const parts = partsOf(progress);
  while (waitingFor === '' && parts.join(', ').length > room) parts.pop();
  return bar + parts.join(', ').slice(0, room);
}

export const formatNumber = (number: number): string => Math.round(number).toLocaleString('en');

const timeLeft = (seconds: number): string =>
  seconds < 120 ? `${formatNumber(seconds)} s left` : `${formatNumber(seconds / 60)} min left`;

export const count = (number: number, noun: string): string =>
  `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`;
