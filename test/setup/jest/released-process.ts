import { afterAll, beforeAll, expect } from '@jest/globals';
import type { ProcessState } from './process-state.js';

/** For all but unit tests: after the last hook of a test file, its process holds no more than before the first one. */
if (!expect.getState().testPath!.endsWith('.spec.ts')) {
  // Unit tests replace modules of Node that are imported here, which they can do only if nothing has imported these.
  const { readProcessState, untilReleased } = await import('./process-state.js');
  let before: ProcessState;
  beforeAll(async () => {
    before = await readProcessState();
  });
  // NodeImportEnvironment lets this hook run after those of the test file.
  afterAll(() => untilReleased(before));
}
