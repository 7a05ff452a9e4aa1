// Ctrl+C, and SIGTERM, during a command that takes long.

import { constants } from 'node:os';
import { CommandError } from './command-error.js';

/** A person or a program has ended the command with a signal. */
export class Interruption extends CommandError {
  /** As a shell reports a program that the signal ended: 130 or 143. */
  override readonly exitCode: number;

  constructor(signal: 'SIGINT' | 'SIGTERM') {
    super('Interrupted.');
    this.exitCode = 128 + constants.signals[signal];
  }
}

/**
 * Runs work that SIGINT and SIGTERM interrupt. A second signal changes nothing: npm sends the one of a terminal again.
 *
 * @param work gets a signal whose reason is an Interruption, and ends soon after it is aborted
 */
export async function interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals) =>
    controller.abort(new Interruption(name as 'SIGINT' | 'SIGTERM'));
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    await work(controller.signal);
  } finally {
    // After a signal, the command ends: the signal that comes again must not end it before the message is written.
    if (!controller.signal.aborted) process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}
