// Holds time in the process of a test: that of the test, and that of the service and its packages, which are in another realm.

import type { Clock, Config } from '@sinonjs/fake-timers';
import type * as Module from 'node:module';

declare const importByNode: (name: string) => Promise<object>;

/** Not Jest's fake timers, which hold the time of the test's realm alone. */
const { install } = (await importByNode('@sinonjs/fake-timers')) as {
  install: (options: Config) => Clock;
};
const { syncBuiltinESMExports } = (await importByNode('node:module')) as typeof Module;

export interface HeldTime {
  /** Lets time pass: the timers and waits end that are due. */
  pass(milliseconds: number): Promise<void>;
  /** Lets time pass, from timer to timer, until some work has ended. */
  passUntil<T>(work: Promise<T>): Promise<T>;
  /** Lets time pass by itself again. */
  release(): void;
}

/**
 * Stops the clocks, timers, intervals, and the waits of node:timers/promises. Network and files work as always. Jest gives a module
 * the waits that Node has when it is imported: a spec imports the module that it tests after it holds time.
 *
 * @param now the date, in milliseconds
 */
export function holdTime(now = Date.now()): HeldTime {
  const clock = install({
    now,
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
    shouldClearNativeTimers: true,
  });
  syncBuiltinESMExports();
  return {
    pass: async (milliseconds) => void (await clock.tickAsync(milliseconds)),
    async passUntil(work) {
      let hasEnded = false;
      const end = () => void (hasEnded = true);
      work.then(end, end);
      while (!hasEnded) await clock.nextAsync();
      return work;
    },
    release() {
      clock.uninstall();
      syncBuiltinESMExports();
    },
  };
}
