import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { emptyDatabase, LOCK, stepsOf } from '../../test/database/empty-database-script.js';
import { MIGRATION_NAMES, MIGRATIONS } from '../../test/database/migrations.js';
import { useResources } from '../../test/setup/jest/resources.js';
import {
  openScriptedPostgres,
  type Script,
  type ScriptedPostgres,
} from '../../test/setup/database/scripted-postgres.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { READ_TIMEOUT } from './postgres-errors.js';
import { migrate } from './prepare-database.js';
import { BEGIN_SESSION } from './session.js';

const resources = useResources();
let server: ScriptedPostgres;
let messages: string[] = [];

const log = (message: string) => void messages.push(message);

afterEach(() => {
  messages = [];
});

async function start(script: Script): Promise<void> {
  server = await openScriptedPostgres(resources, script);
}

const configFor = () => patientConfig({ url: server.url });

/** Not reached: only a statement that hangs would be ended. */
const LIMIT_MS = 60_000;

describe('migrate', () => {
  const STEPS = MIGRATIONS.flatMap(({ steps }) => [...steps, 'INSERT INTO "migrations']);

  it('runs all migrations in one transaction, which has the lock', async () => {
    await start(emptyDatabase());
    expect(await migrate(configFor(), log, LIMIT_MS)).toEqual(MIGRATION_NAMES);
    const guarded = stepsOf(server).slice(stepsOf(server).lastIndexOf('BEGIN'));
    expect(guarded.filter((step) => step !== 'CREATE TABLE "migrations')).toEqual([
      'BEGIN',
      'SAVEPOINT before_lock',
      'lock',
      ...STEPS,
      'COMMIT',
    ]);
    expect(messages).toEqual([]);
  });

  it('behind a pooler, begins each transaction in one query with its settings: the limit of the database for an idle one may be a millisecond', async () => {
    const settings = [{ isOwn: false, name: 'idle_in_transaction_session_timeout', value: '0' }];
    await start({ ...emptyDatabase(), settings: { [BEGIN_SESSION]: settings } });
    await migrate(configFor(), log, LIMIT_MS);
    const begins = server.statements
      .map(({ text }) => text)
      .filter((text) => /BEGIN|START/.test(text));
    const begin =
      "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = '0'";
    expect(begins).toEqual([begin, begin]);
  });

  it('takes the same lock as every other version of the service, which may start at the same time', async () => {
    await start(emptyDatabase());
    await migrate(configFor(), log, LIMIT_MS);
    const locks = server.statements.filter(({ text }) => text === LOCK);
    // "plant" in ASCII. A version with another number would not wait for this one.
    expect(locks.map(({ values }) => values)).toEqual([['482854661748']]);
  });

  it('takes no lock and changes nothing if all migrations have run', async () => {
    const rows = MIGRATION_NAMES.map((name, i) => ({
      id: i + 1,
      timestamp: name.slice(-13),
      name,
    }));
    await start({
      run({ text }) {
        if (text === 'SHOW server_encoding') return { rows: [{ server_encoding: 'UTF8' }] };
        // TypeORM looks whether its table is there, and reads it.
        return { rows: /"information_schema"|FROM "migrations"/.test(text) ? rows : [] };
      },
    });
    expect(await migrate(configFor(), log, LIMIT_MS)).toEqual([]);
    expect(stepsOf(server)).toEqual(['BEGIN', 'COMMIT']);
  });

  it.each(['0A000', '42883'])(
    'goes on with a warning where the database has no such lock (%s)',
    async (code) => {
      await start(emptyDatabase({ [LOCK]: () => ({ error: { code, message: 'no locks here' } }) }));
      expect(await migrate(configFor(), log, LIMIT_MS)).toEqual(MIGRATION_NAMES);
      expect(stepsOf(server)).toEqual(
        expect.arrayContaining(['lock', 'ROLLBACK TO SAVEPOINT before_lock', ...STEPS]),
      );
      expect(messages).toEqual([
        'The database has no advisory locks, so nothing keeps two migrations apart: run one at a time, ' +
          `before the instances start. It says: no locks here (${code})`,
      ]);
    },
  );

  it('changes nothing if the lock fails for another reason', async () => {
    await start(emptyDatabase({ [LOCK]: () => ({ error: { code: '42501' } }) }));
    await expect(migrate(configFor(), log, LIMIT_MS)).rejects.toMatchObject({ code: '42501' });
    expect(stepsOf(server).slice(-2)).toEqual(['lock', 'ROLLBACK']);
    expect(messages).toEqual([]);
  });

  it('writes nothing about a migration that fails: standard output has results, and entries of the log', async () => {
    await start({
      run: (statement) =>
        /CREATE TABLE plants/.test(statement.text)
          ? { error: { code: '42501' } }
          : emptyDatabase().run!(statement),
    });
    const write = jest.spyOn(process.stdout, 'write');
    try {
      await expect(migrate(configFor(), log, LIMIT_MS)).rejects.toMatchObject({ code: '42501' });
      expect(write.mock.calls).toEqual([]);
    } finally {
      write.mockRestore();
    }
  });

  it('uses no connection that it gets after the end of its time', async () => {
    await start(emptyDatabase());
    await expect(migrate(configFor(), log, LIMIT_MS, AbortSignal.abort())).rejects.toThrow(
      READ_TIMEOUT,
    );
    expect(server.statements).toEqual([]);
  });

  it.each([
    ['a success', emptyDatabase()],
    ['a failure', emptyDatabase({ 'SHOW server_encoding': () => ({ rows: [] }) })],
  ])('closes its connection at once, after %s', async (_end, script) => {
    await start(script);
    const run = () => migrate(configFor(), log, LIMIT_MS).catch(() => undefined);
    await run();
    const closed = server.connections[0]!.closed.then(() => 'closed');
    // Without an order to close it, the connection would stay open for seconds, and outlive the next run.
    expect(await Promise.race([closed, run().then(() => 'open')])).toBe('closed');
  });
});

describe('migrations of a database', () => {
  const database = new UnitDatabase();

  it('wait for a lock for a part of the time of a statement, so that the server says why', async () => {
    await database.query(
      `CREATE FUNCTION pg_try_advisory_xact_lock(bigint) RETURNS boolean LANGUAGE plpgsql AS
       $$ BEGIN RAISE EXCEPTION 'lock_timeout %', current_setting('lock_timeout'); END $$`,
    );
    // With the schema of Postgres in second place, this function hides its namesake.
    await database.set('search_path', 'public, pg_catalog');
    const config = patientConfig({ url: database.url, timeout: 20_000 });
    await expect(migrate(config, log, LIMIT_MS)).rejects.toThrow('lock_timeout 16s');
  });

  it('are not run in another schema than before, where each id would be free again', async () => {
    await database.openWithSchema([]);
    await database.query('CREATE SCHEMA other');
    await database.set('search_path', 'other');
    await expect(migrate(patientConfig({ url: database.url }), log, LIMIT_MS)).rejects.toThrow(
      /^its search_path leads to the schema other, but the tables of a Plant Store are in the schema public\. Set search_path to that one; for a second Plant Store, add \?options=-c%20search_path%3Dother to DATABASE_URL$/,
    );
    expect(await database.query(`SELECT to_regclass('other.plants') AS plants`)).toEqual([
      { plants: null },
    ]);
  });

  it('are undone one after the other, and each leaves what was there before it', async () => {
    const dataSource = await database.openWithSchema([]);
    for (const _migration of dataSource.migrations) await dataSource.undoLastMigration();
    expect(await tables()).toEqual([{ name: 'migrations' }]);
    const queryRunner = dataSource.createQueryRunner();
    const before: object[][] = [];
    for (const migration of dataSource.migrations) {
      before.push(await objects());
      await migration.up(queryRunner);
    }
    for (const migration of dataSource.migrations.toReversed()) {
      await migration.down(queryRunner);
      expect(await objects()).toEqual(before.pop());
    }
    await queryRunner.release();
  });

  const tables = () =>
    database.query("SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'");

  /** @returns the columns, constraints and indexes of all tables */
  const objects = () =>
    database.query(
      `SELECT concat_ws(' ', table_name, column_name, data_type, is_nullable, column_default) AS object
       FROM information_schema.columns WHERE table_schema = 'public'
       UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid))
       FROM pg_constraint WHERE connamespace = 'public'::regnamespace
       UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
       ORDER BY 1`,
    );
});
