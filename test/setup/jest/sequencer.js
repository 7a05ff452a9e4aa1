import TestSequencer from '@jest/test-sequencer';

/** So many test files that wait for processes and databases leave no processor idle while one of Jest's workers runs unit tests. */
const AT_ONCE = 3;

/**
 * The longest tests come first, as in Jest's own order, but then the unit tests, which never wait. Otherwise all tests that wait
 * would run at the same time.
 */
export default class WaitingAndComputingTests extends TestSequencer {
  async sort(tests) {
    const sorted = await super.sort(tests);
    const isUnit = ({ path }) => path.endsWith('.spec.ts');
    const unit = sorted.filter(isUnit);
    const others = sorted.filter((test) => !isUnit(test));
    return [...others.slice(0, AT_ONCE), ...unit, ...others.slice(AT_ONCE)];
  }
}
