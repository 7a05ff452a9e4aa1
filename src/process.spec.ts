import { afterEach, expect, it, jest } from '@jest/globals';
import { prepareProcess } from './process.js';

const { versions } = process;
const setVersions = (value: NodeJS.ProcessVersions) =>
  Object.defineProperty(process, 'versions', { value, configurable: true });

afterEach(() => {
  setVersions(versions);
  jest.restoreAllMocks();
});

it.each([
  ['23.11.1', [1]],
  ['24.15.0', [1]],
  ['24.16.0', []],
  ['25.9.0', [1]],
  ['26.0.0', [1]],
  ['26.1.0', []],
  ['100.0.0', []],
])('on Node %s, a program ends with these exit codes: %j', (node, exitCodes) => {
  setVersions({ ...versions, node });
  const write = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  const exit = jest.spyOn(process, 'exit').mockReturnValue(undefined as never);
  prepareProcess();
  expect(exit.mock.calls.flat()).toEqual(exitCodes);
  expect(write.mock.calls).toHaveLength(exitCodes.length);
});
