import { once } from 'node:events';

/** A busy machine needs many seconds to end what an idle one ends at once. */
export const LIMIT_MS = 60_000;

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
