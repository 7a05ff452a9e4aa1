import config from './jest.config.js';

/** The specs alone: see `npm run test:unit`. */
export default { ...config, testRegex: '\\.spec\\.ts$' };
