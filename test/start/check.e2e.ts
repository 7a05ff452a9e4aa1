import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { runInProcess } from '../setup/service/cli.js';

const resources = useResources();

describe('./plant-store check, on a server', () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await openTestDatabase();
  });
  afterEach(() => database.close());

  const run = (command: string) => runInProcess([command], { DATABASE_URL: database.url });

  it('says of a database without tables that a start will make them, and makes none; and then that all is well', async () => {
    expect(await run('check')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        / A start, or \.\/plant-store migrate, brings the schema .+ up to date, for which its role must own the tables\.\n$/,
      ),
      stderr: '',
    });
    expect(await database.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
    expect(await run('migrate')).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: 'The schema of the database is up to date.\n',
    });
    expect(await run('check')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        /^All is well: the settings are valid, and the schema of the database at .+ is up to date\.\n$/,
      ),
    });
  });

  it.each([
    ['DROP TABLE plants', /lacks a table: relation "plants" does not exist/],
    ['DROP TABLE migrations', /the table migrations is missing beside the table plants/],
  ])('says after %s what is wrong, with exit code 1', async (sql, reason) => {
    await run('migrate');
    await database.query(sql);
    const { exitCode, stdout, stderr } = await run('check');
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(/^The database at .+ cannot be used: .+\n$/);
    expect(stderr).toMatch(reason);
  });
});

it('./plant-store check does not wait for a server that is away', async () => {
  const env = { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants' };
  expect(await runInProcess(['check'], env)).toMatchObject({
    exitCode: 1,
    stderr: 'The database at 127.0.0.1:1/plants cannot be used: connect ECONNREFUSED 127.0.0.1:1\n',
  });
});

it('./plant-store check says that there is no embedded database yet, and makes none', async () => {
  const dataDir = join(await temporaryFolder(resources), 'data');
  expect(await runInProcess(['check'], { DATA_DIR: dataDir })).toMatchObject({
    exitCode: 0,
    stdout: `The settings are valid. There is no database in ${dataDir} yet: a start will create it.\n`,
  });
  expect(existsSync(dataDir)).toBe(false);
});
