import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import process from 'node:process';

const { default: TestRunner } = createRequire(import.meta.url)('jest-runner');

/** In Stryker's copy of the project, which the processes of one run share. */
const COVERAGE_FILE = 'mutants-by-test-file.json';

/** The test files that detected mutants, the latest first: the next mutant is often a neighbor. */
let detectors = [];

/**
 * Stryker tells Jest the names of the tests that cover a mutant, and Jest loads every file to look for them. This runner
 * loads only the files that cover it, until one of them detects it: the files that detected the mutants before it, then
 * those of fewest mutants.
 */
export default class MutationRunner extends TestRunner {
  async runTests(tests, watcher, options) {
    const mutant = process.env.__STRYKER_ACTIVE_MUTANT__;
    if (mutant === undefined) {
      await this.runAll(tests, watcher, options);
      return;
    }
    const mutantsOf = JSON.parse(readFileSync(COVERAGE_FILE, 'utf8'));
    const rank = ({ path }) => (detectors.includes(path) ? detectors.indexOf(path) : tests.length);
    const size = ({ path }) => mutantsOf[path].length;
    for (const test of tests.toSorted((a, b) => rank(a) - rank(b) || size(a) - size(b))) {
      if (!mutantsOf[test.path].includes(mutant)) continue;
      await super.runTests([test], watcher, options);
      if (globalThis.detectedMutant === mutant) {
        detectors = [test.path, ...detectors.filter((path) => path !== test.path)];
        return;
      }
    }
  }

  async runAll(tests, watcher, options) {
    const mutantsOf = {};
    for (const test of tests) {
      const perTest = () => globalThis.__stryker__?.mutantCoverage?.perTest ?? {};
      const before = new Set(Object.keys(perTest()));
      await super.runTests([test], watcher, options);
      const names = Object.keys(perTest()).filter((name) => !before.has(name));
      mutantsOf[test.path] = [...new Set(names.flatMap((name) => Object.keys(perTest()[name])))];
    }
    writeFileSync(COVERAGE_FILE, JSON.stringify(mutantsOf));
  }
}
