import { setTimeout as delay } from 'node:timers/promises';

/**
 * Waits for a condition that no event reports.
 *
 * @throws Error when it does not come true in time, or the run was interrupted
 */
export async function waitFor(
  what: string,
  seconds: number,
  signal: AbortSignal,
  condition: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error(`${what} took more than ${seconds} seconds.`);
    await delay(100, undefined, { signal });
  }
}
