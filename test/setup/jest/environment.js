import process from 'node:process';
import { takeCoverage } from 'node:v8';
import { TestEnvironment } from 'jest-environment-node';

/**
 * Lends the tests Node's own import: modules that come through it are loaded once for each worker of Jest. Jest's own
 * import compiles the service and its packages again for each test file, which takes more than a second.
 */
export default class NodeImportEnvironment extends TestEnvironment {
  async setup() {
    await super.setup();
    this.global.importByNode = (name) => import(name);
    // A test that holds the clock holds that of those modules.
    this.global.Date = Date;
  }

  /** Hooks run in the order of their definition, and the one of released-process.ts, the first, must be the last. */
  handleTestEvent({ name }, { rootDescribeBlock: { hooks } }) {
    if (name !== 'run_start') return;
    const first = hooks.findIndex(({ type }) => type === 'afterAll');
    if (first !== -1) hooks.push(...hooks.splice(first, 1));
  }

  async teardown() {
    // Jest kills its workers in the end, before they could write it themselves.
    if (process.env.NODE_V8_COVERAGE !== undefined) takeCoverage();
    await super.teardown();
  }
}
