import { expect, it } from '@jest/globals';
import { readConfig } from '../config/config.js';
import { joinDatabase, openDatabase } from './open-database.js';

it.each([openDatabase, joinDatabase])(
  'a server that is set is used as it is (%p)',
  async (open) => {
    const config = { ...readConfig({}).database, url: 'postgres://db/plants' };
    const database = await open(config, () => undefined);
    expect(database.config).toEqual(config);
    await expect(database.close()).resolves.toBeUndefined();
  },
);
