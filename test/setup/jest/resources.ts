import { afterEach } from '@jest/globals';

/** Keeps what a test opens. */
export interface Resources {
  defer(close: () => void | Promise<void>): void;
}

/** @returns resources that are closed after each test, the latest first */
export function useResources(): Resources {
  let resources = new AsyncDisposableStack();
  afterEach(async () => {
    await resources.disposeAsync();
    resources = new AsyncDisposableStack();
  });
  return { defer: (close) => void resources.defer(close) };
}
