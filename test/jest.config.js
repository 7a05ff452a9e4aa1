import { dirname } from 'node:path';

/** Absolute, because Jest resolves that of a project in another folder than its own. */
const rootDir = dirname(import.meta.dirname);

/** What all projects have in common. */
const common = {
  rootDir,
  roots: ['<rootDir>/src', '<rootDir>/test'],
  // A mutation run that fails leaves its copies of the tests there.
  testPathIgnorePatterns: ['<rootDir>/test/mutation/sandbox/'],
  testEnvironment: '<rootDir>/test/setup/jest/environment.js',
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
  globalSetup: '<rootDir>/test/setup/jest/global-setup.ts',
  globalTeardown: '<rootDir>/test/setup/jest/global-teardown.ts',
};

/**
 * The project of all files that end with `.SUFFIX.ts`. `test/run SUFFIX` runs it, if it has no
 * other name.
 */
const project = (suffix, options = {}) => ({
  ...common,
  displayName: suffix,
  setupFilesAfterEnv: [
    '<rootDir>/test/setup/jest/built-modules.ts',
    '<rootDir>/test/setup/jest/released-process.ts',
  ],
  testRegex: `\\.${suffix}\\.ts$`,
  ...options,
});

/**
 * Unit tests stand beside the sources that they test, or in test/operations. They have no setup
 * files: they replace modules of Node, which works only if nothing has imported these before.
 */
export const unit = project('spec', { displayName: 'unit', setupFilesAfterEnv: [] });

export default {
  rootDir,
  projects: [
    unit,
    project('e2e'),
    // Servers that fail: needs Postgres, PgBouncer, nginx, OpenSSL and curl as Debian installs them.
    project('server'),
    // Needs the extension Citus for the local Postgres, or a cluster in TEST_CITUS_URL.
    project('sharded'),
    // Runs each sample whose language is installed.
    project('examples'),
    // Needs Chromium, whose path CHROMIUM names.
    project('browser'),
    // Builds the image, and runs it.
    project('containers', {
      globalSetup: '<rootDir>/test/containers/global-setup.ts',
      globalTeardown: undefined,
      setupFilesAfterEnv: [],
    }),
  ],
  // Ends only tests that hang: a busy machine needs several times as long as an idle one.
  testTimeout: 180_000,
  // On two cores, three test files at a time take a tenth longer, and five take more processor time.
  maxWorkers: 4,
  // Workers free the memory of all their tests in the end, which takes longer than Jest's default on a busy machine.
  workerGracefulExitTimeout: 10_000,
  testSequencer: '<rootDir>/test/setup/jest/sequencer.js',
  coverageProvider: 'v8',
  coverageReporters: ['json'],
  coverageDirectory: 'coverage/unit',
  collectCoverageFrom: ['src/**/*.ts', '!**/*.spec.ts'],
};
