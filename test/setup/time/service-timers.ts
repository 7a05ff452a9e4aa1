declare const importByNode: (url: string) => Promise<object>;

type Callback = (...args: unknown[]) => void;

/** The global object of the built service, which is not that of the tests. */
const { default: outer } = (await importByNode(
  'data:text/javascript,export default globalThis',
)) as { default: typeof globalThis };

/** Longer than any test: Node's own timer never ends before the one that it stands for. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Lets each timer and interval of one of these lengths, in milliseconds, that the service starts end at once, as if its
 * time had passed: for a test that needs only the outcome.
 *
 * @returns a function after which they have their own lengths again
 */
export function endTimersAtOnce(...lengths: number[]): () => void {
  const { setTimeout: startTimer, setInterval: startInterval } = outer;
  const lengthOf = (delay?: number) => (lengths.includes(delay ?? 0) ? 0 : delay);
  outer.setTimeout = Object.assign(
    (callback: Callback, delay?: number, ...args: unknown[]) =>
      startTimer(callback, lengthOf(delay), ...args),
    startTimer,
  );
  outer.setInterval = Object.assign(
    (callback: Callback, delay?: number, ...args: unknown[]) =>
      startInterval(callback, lengthOf(delay), ...args),
    startInterval,
  );
  return () => {
    outer.setTimeout = startTimer;
    outer.setInterval = startInterval;
  };
}

export interface HeldServiceTimers {
  /** Lets time pass for these timers, in milliseconds. */
  advance(milliseconds: number): void;
  /** Ends those that are held, and gives later timers their own time again. */
  restore(): void;
}

/**
 * Holds the timers of this length, in milliseconds, that the service starts: their time passes when the test says so, for a
 * test of what happens before and after.
 */
export function holdServiceTimers(length: number): HeldServiceTimers {
  const { setTimeout: startTimer, clearTimeout: stopTimer } = outer;
  const held = new Map<NodeJS.Timeout, { end: number; readonly callback: () => void }>();
  let now = 0;
  const clear: typeof clearTimeout = (timer) => {
    held.delete(timer as NodeJS.Timeout);
    stopTimer(timer);
  };
  outer.setTimeout = Object.assign((callback: Callback, delay?: number, ...args: unknown[]) => {
    if (delay !== length) return startTimer(callback, delay, ...args);
    const timer = startTimer(() => undefined, NEVER_MS);
    const hold = { end: now + length, callback: () => callback(...args) };
    held.set(timer, hold);
    timer.refresh = () => {
      hold.end = now + length;
      return timer;
    };
    return timer;
  }, startTimer);
  outer.clearTimeout = clear;
  const advance = (milliseconds: number) => {
    now += milliseconds;
    for (const [timer, { end, callback }] of held) {
      if (end > now) continue;
      clear(timer);
      callback();
    }
  };
  return {
    advance,
    restore() {
      outer.setTimeout = startTimer;
      advance(Infinity);
      outer.clearTimeout = stopTimer;
    },
  };
}
