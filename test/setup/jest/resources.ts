import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach } from '@jest/globals';

/** Keeps what a test opens. */
export interface Resources {
  defer(close: () => void | Promise<void>): void;
}

/** @returns resources that are closed after each test, the latest first */
export function useResources(): Resources {
  let resources = new AsyncDisposableStack();
  afterEach(async () => {
    const opened = resources;
    // Before, because a resource that fails to close must not fail the next tests, too.
    resources = new AsyncDisposableStack();
    await opened.disposeAsync();
  });
  return { defer: (close) => void resources.defer(close) };
}

/** @returns a new folder, which is removed after the test with all that is in it */
export async function temporaryFolder(resources: Resources): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  resources.defer(() => rm(folder, { recursive: true }));
  return folder;
}
