// For the person who presses Ctrl+C during a command.

import { CommandError } from './command-error.js';

/** A person or a program has ended the command with a signal. */
export class Interruption extends CommandError {
  constructor(
    private readonly signal: NodeJS.Signals,
    private readonly stopListening: () => void,
  ) {
    super('Interrupted.');
  }

  /** Ends the process as by the signal, so that a script around the command ends, too. */
  endProcess(): void {
    this.stopListening();
    // Process 1 of a container survives the signal.
    process.exitCode = 1;
    process.kill(process.pid, this.signal);
  }
}

/**
 * Waits for the end of `work`, or for SIGINT or SIGTERM. It listens for them before the work starts: otherwise, a signal that comes
 * at once would end the process, with its work half done and without a message.
 *
 * @throws Interruption when a signal comes first; `work` must then be stopped by the caller
 */
export async function untilInterrupted(work: () => Promise<void>): Promise<void> {
  const { promise: interrupted, reject } = Promise.withResolvers<never>();
  const interrupt = (signal: NodeJS.Signals) => reject(new Interruption(signal, stopListening));
  const stopListening = () => process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    await Promise.race([work(), interrupted]);
    stopListening();
  } catch (error) {
    // npm sends a signal again that the terminal sent: the second one must not end the process before all is put in order.
    if (!(error instanceof Interruption)) stopListening();
    throw error;
  }
}
