import config from './jest.config.js';

/** Builds the image, and runs it: see `npm run test:containers`. */
export default {
  ...config,
  roots: ['<rootDir>/test/containers'],
  testRegex: '\\.container\\.ts$',
  globalSetup: './test/containers/global-setup.ts',
  globalTeardown: undefined,
  setupFilesAfterEnv: [],
  testTimeout: 120_000,
  maxWorkers: 2,
};
