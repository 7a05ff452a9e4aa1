import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { prepareDatabase } from '../src/database/prepare-database.js';
import { readConfig } from '../src/config/config.js';
import { runInProcess } from './setup/cli.js';
import { openTestDatabase, type TestDatabase } from './setup/database.js';
import { startDatabaseProxy } from './setup/database-proxy.js';

/** More than any command gets from its database. */
const MOST_PACKETS = 40;

describe('a command whose database goes silent', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase();
    await prepareDatabase({ ...readConfig({}).database, url: database.url }, () => undefined);
    await database.query(`INSERT INTO plants (id, name) VALUES (1, 'a')`);
  });
  afterAll(() => database.close());

  /** @returns the outcome of a command whose database goes silent after some packets, and whether it did */
  async function runSilenced(words: readonly string[], packets: number) {
    const proxy = await startDatabaseProxy(database.url);
    proxy.freezeAfter(packets);
    try {
      const outcome = await runInProcess(words, {
        DATABASE_URL: proxy.url,
        DATABASE_TIMEOUT_MS: '300',
        DATABASE_START_TIMEOUT_MS: '600',
      });
      return { ...outcome, packets, wasSilent: proxy.isFrozen };
    } finally {
      await proxy.close();
    }
  }

  it.each([
    ['token', 'create', 'a'],
    ['token', 'rotate', 'a', '--yes'],
    ['token', 'list'],
    ['token', 'revoke', 'nobody', '--yes'],
    ['migrate'],
    ['migrate', '--distribute'],
    ['plants', 'export'],
  ])('%s %s: ends, at whatever point that is, with a sentence or its result', async (...words) => {
    const failed: number[] = [];
    for (let packets = 0, wasSilent = true; wasSilent && packets < MOST_PACKETS; packets++) {
      const outcome = await runSilenced(words, packets);
      ({ wasSilent } = outcome);
      expect(outcome.stderr).not.toMatch(/^ +at |Error|Nest/m);
      if (outcome.exitCode === 0) continue;
      expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/\S\.?\n$/) });
      failed.push(packets);
    }
    expect(failed.length).toBeGreaterThan(5);
    expect(failed.at(-1)).toBeLessThan(MOST_PACKETS - 1);
  });
});
