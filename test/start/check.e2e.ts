import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { runInProcess } from '../setup/service/cli.js';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';

const WELL =
  /^All is well: the settings are valid, and the schema of the database at .+ is up to date\.\n$/;

describe('./plant-store check, on a server', () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await openTestDatabase();
  });
  afterEach(() => database.close());

  const run = (command: string) => runInProcess([command], { DATABASE_URL: database.url });

  it('says of a database without tables that a start will make them, and makes none', async () => {
    expect(await run('check')).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(
        / A start, or \.\/plant-store migrate, brings the schema .+ up to date, for which its role must own the tables\.\n$/,
      ),
      stderr: '',
    });
    expect(await database.query("SELECT 1 FROM pg_tables WHERE schemaname = 'public'")).toEqual([]);
  });

  it('says that all is well', async () => {
    await run('migrate');
    expect(await run('check')).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(WELL) });
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

  it('does not wait for a server that is away', async () => {
    const env = { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants' };
    expect(await runInProcess(['check'], env)).toMatchObject({
      exitCode: 1,
      stderr:
        'The database at 127.0.0.1:1/plants cannot be used: connect ECONNREFUSED 127.0.0.1:1\n',
    });
  });
});

it('./plant-store check says that there is no embedded database yet, and makes none; then that all is well', async () => {
  const parent = await makeDataDir();
  const dataDir = join(parent, 'data');
  const run = (command: string) => runInProcess([command], { DATA_DIR: dataDir });
  expect(await run('check')).toMatchObject({
    exitCode: 0,
    stdout: `The settings are valid. There is no database in ${dataDir} yet: a start will create it.\n`,
  });
  expect(existsSync(dataDir)).toBe(false);
  await run('migrate');
  expect(await run('check')).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(WELL) });
  await removeDataDir(parent);
});
