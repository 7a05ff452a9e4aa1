import { CommandError } from './command-error.js';

/** A person or a program has ended the command with a signal. */
export class Interruption extends CommandError {
  constructor(readonly signal: NodeJS.Signals) {
    super('Interrupted.');
  }
}

/**
 * Waits for the end of `work`, or for SIGINT or SIGTERM.
 *
 * @throws Interruption when a signal comes first; `work` must then be stopped by the caller
 */
export async function untilInterrupted(work: Promise<void>): Promise<void> {
  const { promise: interrupted, reject } = Promise.withResolvers<never>();
  const interrupt = (signal: NodeJS.Signals) => reject(new Interruption(signal));
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    await Promise.race([work, interrupted]);
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

/** Ends the process as by this signal, so that a script around the command ends, too. */
export function endBy(signal: NodeJS.Signals): void {
  // Process 1 of a container survives the signal.
  process.exitCode = 1;
  process.kill(process.pid, signal);
}
