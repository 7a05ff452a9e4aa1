declare const importByNode: (url: string) => Promise<object>;

type Callback = (...args: unknown[]) => void;

/** The global object of the built service, which is not that of the tests. */
const { default: outer } = (await importByNode(
  'data:text/javascript,export default globalThis',
)) as { default: typeof globalThis };

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
