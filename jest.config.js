/** Two suites that differ in nothing but their place: units beside the code, end-to-end tests in test/. */
export default {
  testEnvironment: 'node',
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
  // A limit for what hangs, not a measure: a busy machine needs several times as long as an idle one.
  testTimeout: 60_000,
  // More than two cores, which is the smallest machine: tests mostly wait for processes and databases.
  maxWorkers: 3,
};
