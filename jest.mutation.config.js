import config from './jest.config.js';

/** The tests that run within Jest's process, where Stryker can switch between mutants: see `npm run test:mutation`. */
export default {
  ...config,
  runner: './test/mutation/runner.js',
  testEnvironment: './test/mutation/environment.js',
  // A mutant often makes a test wait for what never comes.
  testTimeout: 15_000,
  roots: ['<rootDir>/src', '<rootDir>/test'],
  testRegex: [
    'src/.*\\.spec\\.ts$',
    'test/(base-url|bearer-token|check-order|create-plant|cut-off|database-failure|distributed-plants|document-requests|http-errors|idempotent-create|oidc|portable-statements|readiness|request-body|routing|shutdown|token-age|token-cache|unread-body|wait-for-database)\\.e2e\\.ts$',
  ],
};
