import config from './jest.config.js';

/** The specs alone: see `npm run test:unit`. */
export default {
  ...config,
  testRegex: '\\.spec\\.ts$',
  coverageProvider: 'v8',
  coverageReporters: ['json'],
  coverageDirectory: 'coverage/unit',
  collectCoverageFrom: ['src/**/*.ts', '!**/*.spec.ts'],
};
