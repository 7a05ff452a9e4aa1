import process from 'node:process';
import NodeImportEnvironment from '../setup/environment.js';

/** For Stryker: one failed test is enough, and modules that Node keeps loaded learn which mutant is active. */
export default class MutationEnvironment extends NodeImportEnvironment {
  constructor(config, context) {
    super(config, context);
    this.mutant = process.env.__STRYKER_ACTIVE_MUTANT__;
  }

  async setup() {
    await super.setup();
    // The object that the modules know: Stryker makes it, and the first module that is loaded keeps it.
    globalThis.__stryker__ ??= this.global.__stryker__ ?? {};
    globalThis.__stryker__.activeMutant = this.mutant;
  }

  handleTestEvent({ name }, { rootDescribeBlock }) {
    if (this.mutant === undefined) return;
    // A global variable, because Jest loads this module a second time, not as the runner does.
    if (name === 'test_fn_failure' || name === 'hook_failure') {
      globalThis.detectedMutant = this.mutant;
    }
    if (globalThis.detectedMutant === this.mutant) skip(rootDescribeBlock);
  }
}

function skip(block) {
  block.mode = 'skip';
  for (const child of block.children ?? []) skip(child);
}
