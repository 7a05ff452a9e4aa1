import TestSequencer from '@jest/test-sequencer';

/**
 * The longest tests come first, as in Jest's own order, and then the unit tests. The longest ones wait for processes and
 * databases most of the time: if all of them ran at the same time, the processors would be idle.
 */
export default class WaitingAndComputingTests extends TestSequencer {
  constructor(options) {
    super(options);
    // The last of Jest's workers begins with the unit tests.
    this.first = options.globalConfig.maxWorkers - 1;
  }

  async sort(tests) {
    const sorted = await super.sort(tests);
    const isUnit = ({ path }) => path.endsWith('.spec.ts');
    const unit = sorted.filter(isUnit);
    const others = sorted.filter((test) => !isUnit(test));
    return [...others.slice(0, this.first), ...unit, ...others.slice(this.first)];
  }
}
