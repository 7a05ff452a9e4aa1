import process from 'node:process';
import NodeImportEnvironment from '../setup/jest/environment.js';

/** For Stryker: one failed test is enough. */
export default class MutationEnvironment extends NodeImportEnvironment {
  mutant = process.env.__STRYKER_ACTIVE_MUTANT__;

  async setup() {
    await super.setup();
    // For the runner: Stryker counts there which test runs which mutant.
    globalThis.__stryker__ = this.global.__stryker__;
  }

  handleTestEvent({ name, test }, { rootDescribeBlock }) {
    if (this.mutant === undefined) return;
    // Jest reports the error of a hook with the tests, so they must not be skipped when it happens.
    if (name === 'test_done' && test.errors.length > 0) {
      // A global variable, because Jest loads this module a second time, not as the runner does.
      globalThis.detectedMutant = this.mutant;
    }
    if (globalThis.detectedMutant === this.mutant) skip(rootDescribeBlock);
  }
}

function skip(block) {
  block.mode = 'skip';
  for (const child of block.children ?? []) skip(child);
}
