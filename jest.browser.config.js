import config from './jest.config.js';

/** Needs Chromium, named by CHROMIUM: see `npm run test:browser`. */
export default {
  ...config,
  roots: ['<rootDir>/test/browser'],
  testRegex: '\\.browser\\.ts$',
  testTimeout: 120_000,
};
