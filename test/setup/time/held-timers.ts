import { jest } from '@jest/globals';

/** Holds the timers of time limits until `jest.useRealTimers()`; everything else runs as always. */
export function holdTimers(): void {
  jest.useFakeTimers({
    doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask', 'performance', 'Date'],
  });
}
