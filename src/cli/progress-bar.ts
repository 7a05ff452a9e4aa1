import type { Writable } from 'node:stream';
import cliProgress from 'cli-progress';

const { Format, SingleBar } = cliProgress;

/** Interval of progress lines, if standard error is not a terminal. */
const LINE_INTERVAL_MS = 5000;

const BAR_LENGTH = 10;

/** A narrower terminal has room for the counts only. */
const MIN_WIDTH_FOR_BAR = 60;

/** What a progress bar shows. */
export interface Progress {
  /** How much of the work is done, from 0 to 1; undefined if that is not known. */
  readonly share: number | undefined;
  /** The most important parts first: the last ones are left out where a terminal is narrow. */
  readonly parts: string[];
  /** Whether the parts are cut where a terminal is narrow, and none is left out. */
  readonly isWaiting?: boolean;
}

/** A progress bar on a terminal, and a line now and then anywhere else. */
export class ProgressBar {
  private readonly bar: cliProgress.SingleBar;
  private readonly timer: NodeJS.Timeout | undefined;

  constructor(stderr: Writable & { readonly isTTY?: boolean }, progress: Progress) {
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
        () => stderr.write(`${progress.parts.join(', ')}\n`),
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

/** Leaves out what a narrow terminal has no room for. */
function format(
  { parts, share, isWaiting = false }: Progress,
  options: cliProgress.Options,
  width: number,
): string {
  const hasBar = share !== undefined && width >= MIN_WIDTH_FOR_BAR;
  const bar = hasBar ? `${Format.BarFormat(share, options)} ` : '';
  const room = width - bar.length;
  while (!isWaiting && parts.join(', ').length > room) parts.pop();
  return bar + parts.join(', ').slice(0, room);
}

export const formatNumber = (number: number): string => Math.round(number).toLocaleString('en');

export const timeLeft = (seconds: number): string =>
  seconds < 120 ? `${formatNumber(seconds)} s left` : `${formatNumber(seconds / 60)} min left`;

export const count = (number: number, noun: string): string =>
  `${formatNumber(number)} ${noun}${number === 1 ? '' : 's'}`;
