import config from './jest.config.js';

/** Needs the extension Citus for the local Postgres, or a cluster in TEST_CITUS_URL: see `npm run test:sharded`. */
export default {
  ...config,
  roots: ['<rootDir>/test/sharded'],
  testRegex: '\\.sharded\\.ts$',
  testTimeout: 180_000,
};
