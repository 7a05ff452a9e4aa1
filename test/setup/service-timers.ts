declare const importByNode: (url: string) => Promise<object>;

/** The global object of the built service, which is not that of the tests. */
const { default: outer } = (await importByNode(
  'data:text/javascript,export default globalThis',
)) as { default: typeof globalThis };

/**
 * Lets each timer of this length that the service starts end at once, as if its time had passed.
 *
 * @returns a function after which timers have their own lengths again
 */
export function endTimersAtOnce(milliseconds: number): () => void {
  const original = outer.setTimeout;
  const shortened = (callback: (...args: unknown[]) => void, delay?: number, ...args: unknown[]) =>
    original(callback, delay === milliseconds ? 0 : delay, ...args);
  outer.setTimeout = Object.assign(shortened, original);
  return () => {
    outer.setTimeout = original;
  };
}
