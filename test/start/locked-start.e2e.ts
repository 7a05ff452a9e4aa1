import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { runService } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { until } from '../setup/time/until.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { prepareDatabase } from '../../src/database/prepare-database.js';
import { readConfig } from '../../src/config/config.js';

describe('a start while another session has locked a table', () => {
  let database: TestDatabase;
  let locker: pg.Client;

  beforeEach(async () => {
    database = await openTestDatabase();
    await prepareDatabase({ ...readConfig({}).database, url: database.url }, () => undefined);
    locker = new pg.Client({ connectionString: database.url });
    await locker.connect();
  });
  afterEach(async () => {
    await locker.end();
    await database.close();
  });

  const env = () => ({
    DATABASE_URL: database.url,
    DATABASE_TIMEOUT_MS: '2000',
    DATABASE_START_TIMEOUT_MS: '4500',
  });
  const lock = (table: string) =>
    locker.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);

  const REASON =
    'canceling statement due to lock timeout (55P03); another session holds a lock on a table or a row of the service: pg_locks and pg_stat_activity show which one';
  const failure = new RegExp(
    `^The database at \\S+ could not be used within 4500 ms: ${RegExp.escape(REASON)}$`,
    'm',
  );

  it('ends with the reason, and says before what it waits for; commands end with it, too', async () => {
    await lock('migrations');
    const service = runService(env());
    const words = [['token', 'list'], ['token', 'create', 'a'], ['migrate']];
    const commands = words.map((command) => runInProcess(command, env()));
    const [exitCode, ...outcomes] = await Promise.all([service.exit(), ...commands]);
    for (const outcome of outcomes) {
      expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(failure) });
    }
    expect(exitCode).toBe(1);
    expect(service.stderr).toMatch(failure);
    expect(service.stdout).toContain(REASON);
    // The session of the last attempt ends a moment after its connection.
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await until(async () => (await database.query(waiting)).length === 0);
  });

  it('of a new version that has to change a locked table ends in the same way', async () => {
    await database.query(
      `DROP TABLE plants; DELETE FROM migrations WHERE name LIKE 'CreatePlants%'`,
    );
    // The migration writes what it did.
    await locker.query('BEGIN; LOCK TABLE migrations IN SHARE MODE');
    const outcome = await runInProcess(['migrate'], env());
    expect(outcome).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(failure) });
  });

  it('that SIGTERM ends in the middle of a migration changes nothing, and the next one runs it', async () => {
    await database.query(
      `DROP TABLE plants; DELETE FROM migrations WHERE name LIKE 'CreatePlants%'`,
    );
    // The migration has made its table, and waits to write that it ran.
    await locker.query('BEGIN; LOCK TABLE migrations IN SHARE MODE');
    const service = runService({ DATABASE_URL: database.url, DATABASE_TIMEOUT_MS: '50000' });
    const waiting = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE 'INSERT INTO "migrations"%'`;
    await until(async () => (await database.query(waiting)).length > 0);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
    await locker.query('ROLLBACK');
    const session = `SELECT 1 FROM pg_stat_activity
      WHERE datname = current_database() AND application_name = 'plant-store'`;
    await until(async () => (await database.query(session)).length === 0);
    expect(await database.query(`SELECT to_regclass('plants') AS plants`)).toEqual([
      { plants: null },
    ]);
    expect(await runInProcess(['migrate'], env())).toMatchObject({ exitCode: 0 });
    expect(await database.query('SELECT 1 FROM plants')).toEqual([]);
  });

  it('token list ends when the tokens are locked', async () => {
    await lock('access_tokens');
    expect(await runInProcess(['token', 'list'], env())).toEqual({
      exitCode: 1,
      stdout: '',
      stderr:
        'The database cannot be used: canceling statement due to lock timeout (55P03); another session holds a lock on a table or a row of the service: pg_locks and pg_stat_activity show which one.\n',
    });
  });
});
