import { afterAll, beforeAll } from '@jest/globals';
import { killPrograms } from '../process/command.js';
import { readProcessState, untilReleased, type ProcessState } from './process-state.js';

// After the last hook of a test file, its process holds no more than before the first one.
let before: ProcessState;
beforeAll(async () => {
  before = await readProcessState();
});
// NodeImportEnvironment lets this hook run after those of the test file.
afterAll(() => untilReleased(before).finally(killPrograms));
