import process from 'node:process';
import config from './jest.config.js';

process.env.TEST_RELEASE_LIMIT_MS = '3000';

/** The tests that run within Jest's process, where Stryker can switch between mutants: see `npm run test:mutation`. */
export default {
  ...config,
  runner: './test/mutation/runner.js',
  testEnvironment: './test/mutation/environment.js',
  // A mutant often makes a test wait for what never comes. On an idle machine, the slowest test takes 3 seconds; those that
  // take longer have a time limit of their own.
  testTimeout: 6000,
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testRegex: [
    'src/.*\\.spec\\.ts$',
    'test/(base-url|bearer-token|check-order|create-plant|cut-off|database-failure|distributed-plants|document-requests|http-errors|idempotent-create|oidc|portable-statements|readiness|request-body|routing|shutdown|token-age|token-cache|unread-body|wait-for-database)\\.e2e\\.ts$',
  ],
};
