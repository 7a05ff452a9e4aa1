import config from './jest.config.js';

/** Needs the programs of Postgres, PgBouncer and nginx as Debian installs them: see `npm run test:server`. */
export default {
  ...config,
  roots: ['<rootDir>/test/server'],
  testRegex: '\\.server\\.ts$',
  testTimeout: 120_000,
};
