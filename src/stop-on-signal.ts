// What the signals that stop the service do: before it has started, and after that.

import type { Logger } from 'pino';

/** A terminal that is closed sends SIGHUP. */
export const STOP_SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** A program between the terminal and the service may forward the signal that the terminal sent to both. */
const SAME_SIGNAL_MS = 100;

/**
 * Ends a service that has opened nothing yet, until `stopOnSignal` is called. The first process of a container ignores a signal
 * without a handler.
 */
export function endOnSignal(): void {
  for (const signal of STOP_SIGNALS) process.on(signal, endAtOnce);
}

function endAtOnce(): void {
  process.exit(0);
}

/**
 * The first signal stops the service gracefully, the second one at once.
 *
 * @returns aborted from the first signal on
 */
export function stopOnSignal(logger: Logger, stop: () => Promise<void>): AbortSignal {
  const stopping = new AbortController();
  let first: { signal: NodeJS.Signals; time: number } | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (first !== undefined) {
      // When a terminal is closed, both the system and the shell send SIGHUP.
      if (signal === 'SIGHUP') return;
      if (signal === first.signal && performance.now() - first.time < SAME_SIGNAL_MS) return;
      logger.warn(
        { signal },
        `The Plant Store ends without waiting for requests: it received a second signal, ${signal}.`,
      );
      process.exit(1);
    }
    first = { signal, time: performance.now() };
    stopping.abort();
    logger.info({ signal }, `The Plant Store stops: it received ${signal}.`);
    stop().then(
      () => {
        logger.info('The Plant Store has stopped.');
        process.exit(0);
      },
      async (error: unknown) => {
        const { explainStartError } = await import('./start-errors.js');
        process.stderr.write(`${explainStartError(error)}\n`);
        process.exit(1);
      },
    );
  };
  for (const signal of STOP_SIGNALS) process.on(signal, onSignal).off(signal, endAtOnce);
  return stopping.signal;
}
