import { jest } from '@jest/globals';

/** What Node itself does: network events, and the code that waits for them. */
const OF_NODE = ['nextTick', 'setImmediate', 'queueMicrotask'] as const;

/** Holds the timers of time limits until `jest.useRealTimers()`; everything else runs as always. */
export function holdTimers(): void {
  jest.useFakeTimers({ doNotFake: [...OF_NODE, 'performance', 'Date'] });
}

/**
 * Holds timers and clocks until `jest.useRealTimers()`: time passes as the test says.
 *
 * @param now what the clock shows, in milliseconds
 */
export function holdTime(now = Date.now()): void {
  jest.useFakeTimers({ now, doNotFake: [...OF_NODE] });
}
