/** Unit tests are beside the code (*.spec.ts); end-to-end tests are in test/ (*.e2e.ts). */
export default {
  testEnvironment: './test/setup/environment.js',
  setupFilesAfterEnv: ['./test/setup/built-modules.ts', './test/setup/released-process.ts'],
  roots: ['<rootDir>/src', '<rootDir>/test', '<rootDir>/bench'],
  testRegex: '\\.(spec|e2e)\\.ts$',
  extensionsToTreatAsEsm: ['.ts'],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  transform: {
    '^.+\\.ts$': [
      '@swc/jest',
      {
        jsc: {
          target: 'es2024',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true },
        },
      },
    ],
  },
  globalSetup: './test/setup/global-setup.ts',
  globalTeardown: './test/setup/global-teardown.ts',
  // Ends only tests that hang: a busy machine needs several times as long as an idle one.
  testTimeout: 60_000,
  // Tests often wait for processes and databases: on two cores, three test files at a time leave a fifth of them idle.
  maxWorkers: 5,
};
