import { afterEach, beforeEach, jest } from '@jest/globals';
import { settled } from './settled.js';

/**
 * Imports a module that waits with node:timers/promises, in a file whose tests hold the clock: its waits take no time,
 * and set the clock ahead instead.
 *
 * @param load a dynamic import
 */
export async function importWithHeldWaits<Module>(load: () => Promise<Module>): Promise<Module> {
  let now = 0;
  beforeEach(() => void jest.spyOn(performance, 'now').mockImplementation(() => now));
  afterEach(() => void jest.restoreAllMocks());
  return importWith(async (milliseconds) => {
    now += milliseconds;
    await settled();
  }, load);
}

/**
 * Imports a module that waits with node:timers/promises, so that its waits use the global timers, which Jest can hold.
 *
 * @param load a dynamic import
 */
export function importWithGlobalTimers<Module>(load: () => Promise<Module>): Promise<Module> {
  return importWith((milliseconds) => new Promise((done) => setTimeout(done, milliseconds)), load);
}

async function importWith<Module>(
  wait: (milliseconds: number) => Promise<void>,
  load: () => Promise<Module>,
): Promise<Module> {
  // Not by an import, of which Jest would keep the functions.
  const timers = process.getBuiltinModule('node:timers/promises');
  const original = timers.setTimeout;
  timers.setTimeout = async <T>(milliseconds = 1, value?: T) => {
    await wait(milliseconds);
    return value as T;
  };
  try {
    return await load();
  } finally {
    timers.setTimeout = original;
  }
}
