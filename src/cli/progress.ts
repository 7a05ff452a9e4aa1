// Shows a person how far a load or an export is.

import cliProgress from 'cli-progress';
import type { Streams } from './output.js';

/** Interval of progress lines, if standard error is not a terminal. */
const LINE_INTERVAL_MS = 5000;

const BAR_INTERVAL_MS = 250;

/**
 * Shows a text until it is disposed: in a bar on a terminal, in a line every five seconds elsewhere.
 *
 * @param share of the work that is done, from 0 to 1; undefined if that is not known
 */
export function showProgress(
  stderr: Streams['stderr'],
  text: () => string,
  share?: () => number,
): Disposable {
  if (stderr.isTTY !== true) {
    const timer = setInterval(() => stderr.write(`${text()}\n`), LINE_INTERVAL_MS);
    return { [Symbol.dispose]: () => clearInterval(timer) };
  }
  const bar = new cliProgress.SingleBar({
    stream: stderr,
    clearOnComplete: true,
    barsize: 20,
    format: share === undefined ? '{text}' : '{bar} {percentage} %, {text}',
  });
  bar.start(1, 0, { text: text() });
  const update = () => bar.update(share?.() ?? 0, { text: text() });
  const timer = setInterval(update, BAR_INTERVAL_MS);
  return {
    [Symbol.dispose]: () => {
      clearInterval(timer);
      update();
      bar.stop();
    },
  };
}

export const formatNumber = (number: number): string => number.toLocaleString('en');
