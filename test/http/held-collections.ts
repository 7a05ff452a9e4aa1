import { afterEach } from '@jest/globals';

/**
 * Keeps the service from collecting garbage.
 *
 * @returns a function that begins this, until the end of the test, and returns the options of each collection that was asked for
 */
export function holdCollections(): () => readonly unknown[] {
  const { gc } = globalThis;
  afterEach(() => {
    globalThis.gc = gc;
  });
  return () => {
    const collections: unknown[] = [];
    globalThis.gc = ((options: unknown) => void collections.push(options)) as typeof gc;
    return collections;
  };
}
