import type { Logger } from 'pino';
import { endAtOnce, STOP_SIGNALS } from './signals.js';

/** A program between the terminal and the service may forward the signal that the terminal sent to both. */
const SAME_SIGNAL_MS = 100;

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
      // A terminal that is closed sends SIGHUP several times: as the system, and as the shell.
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
