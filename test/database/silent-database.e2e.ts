import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { patientConfig } from '../setup/database/patient.js';
import { runInProcess } from '../setup/service/cli.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { startDatabaseProxy } from '../setup/database/database-proxy.js';

/** After how many packets: at last more than a command gets from its database. */
const POINTS = [0, 3, 6, 9, 12, 15, 18, 24];

/** Each command that goes silent takes it; on a busy machine, eight need a second to connect. */
const TIMEOUT_MS = '2000';

describe('a command whose database goes silent', () => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await openTestDatabase();
    await prepareDatabase(patientConfig({ url: database.url }), () => undefined);
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
        DATABASE_TIMEOUT_MS: TIMEOUT_MS,
        DATABASE_START_TIMEOUT_MS: TIMEOUT_MS,
      });
      return { ...outcome, wasSilent: proxy.isFrozen };
    } finally {
      await proxy.close();
    }
  }

  it.each([
    // Ends its transaction; reads a stream. Both bring the schema up to date before.
    ['token', 'create', 'a'],
    ['plants', 'export'],
  ])('%s %s: ends, at whatever point that is, with a sentence or its result', async (...words) => {
    // Nest writes to the process itself.
    const writes = [process.stdout, process.stderr].map((stream) => jest.spyOn(stream, 'write'));
    const outcomes = await Promise.all(POINTS.map((packets) => runSilenced(words, packets)));
    const written = writes.flatMap(({ mock }) => mock.calls.map(([text]) => String(text)));
    jest.restoreAllMocks();
    expect(written.filter((text) => text.includes('Nest'))).toEqual([]);
    for (const outcome of outcomes) {
      expect(outcome.stderr).not.toMatch(/^ +at |Error|Nest/m);
      if (outcome.exitCode === 0) continue;
      expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(/\S\n$/) });
    }
    expect(outcomes.some(({ exitCode, wasSilent }) => exitCode === 1 && wasSilent)).toBe(true);
    expect(outcomes.some(({ wasSilent }) => !wasSilent)).toBe(true);
  });
});
