import { expect, it } from '@jest/globals';
import { readConfig } from './config/config.js';
import { descriptorWarning } from './descriptor-limit.js';

const config = readConfig({ MAX_CONNECTIONS: '900', DATABASE_POOL_SIZE: '20' });
const warningFor = (limit: number | undefined) =>
  descriptorWarning({ ...config, database: { ...config.database, url: '' } }, limit);

it('a limit below connections, pool and reserve is reported, with both numbers', () => {
  expect(warningFor(1019)).toMatch(/^The limit of open files is 1019, .* may need 1020\. /);
});

it('a limit that is enough is not reported', () => {
  expect(warningFor(1020)).toBeUndefined();
});
