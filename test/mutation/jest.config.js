import { join } from 'node:path';
import { unit } from '../jest.config.js';

/** The unit tests, which detect a mutant in milliseconds. */
export default {
  ...unit,
  // A process of Stryker keeps its server for the next mutant. The server ends with the process.
  globalTeardown: undefined,
  runner: '<rootDir>/test/mutation/runner.js',
  // An absolute path, because Stryker looks for it without Jest's configuration.
  testEnvironment: join(import.meta.dirname, 'environment.js'),
  // A mutant often makes a test wait for what never comes. On an idle machine, the slowest one waits 2.5 seconds.
  testTimeout: 4000,
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testRegex: 'src/.*\\.spec\\.ts$',
};
