import config from './jest.config.js';

/** Runs each sample whose language is installed: see `npm run test:examples`. */
export default {
  ...config,
  roots: ['<rootDir>/test/examples'],
  testRegex: '\\.examples\\.ts$',
};
