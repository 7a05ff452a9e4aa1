import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { runService } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { until } from '../setup/time/until.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';

describe('a start while another session has locked a table', () => {
  let database: TestDatabase;
  let locker: pg.Client;

  beforeEach(async () => {
    database = await openTestDatabase();
    await runInProcess(['migrate'], { DATABASE_URL: database.url });
    locker = new pg.Client({ connectionString: database.url });
    await locker.connect();
  });
  afterEach(async () => {
    await locker.end();
    await database.close();
  });

  const env = () => ({
    DATABASE_URL: database.url,
    // The server ends a wait for a lock after a part of it; the rest is for a busy machine.
    DATABASE_TIMEOUT_MS: '2000',
    DATABASE_START_TIMEOUT_MS: '2000',
  });
  const lock = (table: string) =>
    locker.query(`BEGIN; LOCK TABLE ${table} IN ACCESS EXCLUSIVE MODE`);
  /** As of a new version that has to change a table: the migration writes what it did. */
  const lockForMigration = async () => {
    await database.query(
      `DROP TABLE plants; DELETE FROM migrations WHERE name LIKE 'CreatePlants%'`,
    );
    await locker.query('BEGIN; LOCK TABLE migrations IN SHARE MODE');
  };
  const noneWaits = `SELECT 1 FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'`;

  const REASON =
    'canceling statement due to lock timeout (55P03); another session holds a lock on a table or a row of the service: pg_locks and pg_stat_activity show which one';

  it.each([
    ['and there is nothing to migrate', () => lock('migrations')],
    ['that a migration needs', lockForMigration],
  ])('%s ends with the reason', async (_when, lockTable) => {
    await lockTable();
    const { exitCode, stdout, stderr } = await runInProcess(['migrate'], env());
    expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: '' });
    expect(stderr).toMatch(
      new RegExp(
        `^The database at \\S+ could not be used within 2000 ms: ${RegExp.escape(REASON)}$`,
        'm',
      ),
    );
    // The session of the last attempt ends a moment after its connection.
    await until(async () => (await database.query(noneWaits)).length === 0);
  });

  it('that SIGTERM ends in the middle of a migration changes nothing, and the next one runs it', async () => {
    await lockForMigration();
    const service = runService({ DATABASE_URL: database.url, DATABASE_TIMEOUT_MS: '50000' });
    // The migration has made its table, and waits to write that it ran.
    const waiting = `${noneWaits} AND query LIKE 'INSERT INTO "migrations"%'`;
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
      stderr: `The database cannot be used: ${REASON}.\n`,
    });
  });
});
