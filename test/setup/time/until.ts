import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';

/** A busy machine needs many seconds to end what an idle one ends at once. */
const LIMIT_MS = 60_000;

/** The pause grows from the first to the second: looking costs processor time, which what is waited for needs. */
const PAUSE_MS = 5;
const MAX_PAUSE_MS = 50;

/**
 * Waits for a condition that no event reports, until the time limit of the test. Where turns of the event loop suffice, use
 * `settled`.
 */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  // Without a reference, the loop of a test that failed does not keep the process alive.
  for (let pause = PAUSE_MS; !(await condition()); pause = Math.min(pause * 1.5, MAX_PAUSE_MS)) {
    await delay(pause, undefined, { ref: false });
  }
}

/**
 * Waits until `list` is empty.
 *
 * @param list returns what is still held, in words
 * @throws Error that names what is still held
 */
export async function untilNothingHeld(list: () => Promise<readonly string[]>): Promise<void> {
  // A timer, because a test may hold the clocks.
  const limit = AbortSignal.timeout(LIMIT_MS);
  let held: readonly string[] = [];
  await until(async () => (held = await list()).length === 0 || limit.aborted);
  if (held.length > 0) {
    throw new Error(`Still held after ${LIMIT_MS / 1000} seconds: ${held.join('; ')}`);
  }
}

/**
 * Waits for what a service that hangs would never do.
 *
 * @param what a sentence about what is waited for
 * @throws Error with this sentence after a minute
 */
export async function within<T>(what: string, work: Promise<T>): Promise<T> {
  // A timer, because a test may hold the clocks.
  const limit = AbortSignal.timeout(LIMIT_MS);
  const done = new AbortController();
  const late = once(limit, 'abort', { signal: done.signal }).then(() => {
    throw new Error(`Not after ${LIMIT_MS / 1000} seconds: ${what}`);
  });
  // When `work` ends first, nobody waits for this.
  late.catch(() => undefined);
  return Promise.race([work, late]).finally(() => done.abort());
}
