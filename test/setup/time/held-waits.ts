import type { Abortable } from 'node:events';
import type * as Module from 'node:module';

declare const importByNode: (name: string) => Promise<object>;

/** Node's own, because that of Jest does nothing. */
const { syncBuiltinESMExports } = (await importByNode('node:module')) as typeof Module;

/** Waits with the global timers, which Jest can hold. */
export const waitForTimer = (milliseconds: number): Promise<void> =>
  new Promise((done) => setTimeout(done, milliseconds));

/**
 * Imports a module that waits with node:timers/promises, so that it waits with `wait` instead, by default with the global
 * timers.
 *
 * @param load a dynamic import
 */
export async function importWithWaits<Module>(
  load: () => Promise<Module>,
  wait = waitForTimer,
): Promise<Module> {
  const restore = replaceWaits(wait);
  try {
    return await load();
  } finally {
    restore();
  }
}

/**
 * Lets built modules, and modules that are imported from now on, wait with `wait` and not with node:timers/promises: for code
 * that awaits a time. `service-timers.ts` has those that code starts with `setTimeout` and `setInterval`.
 *
 * @returns a function that takes this back for built modules and for later imports
 */
export function replaceWaits(wait: (milliseconds: number) => Promise<void>): () => void {
  // Not by an import, of which Jest would keep the functions.
  const timers = process.getBuiltinModule('node:timers/promises');
  const original = timers.setTimeout;
  timers.setTimeout = async <T>(milliseconds = 1, value?: T, { signal }: Abortable = {}) => {
    const aborted = new Promise<never>((_, reject) => {
      signal?.addEventListener('abort', () => reject(signal.reason as Error));
    });
    await Promise.race([wait(milliseconds), aborted]);
    return value as T;
  };
  syncBuiltinESMExports();
  return () => {
    timers.setTimeout = original;
    syncBuiltinESMExports();
  };
}
