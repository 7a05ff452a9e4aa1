import { beforeEach, describe, expect, it, jest } from '@jest/globals';
import { openScriptedPostgres } from '../../test/setup/database/scripted-postgres.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { until } from '../../test/setup/time/until.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import type { DatabaseConfig } from '../config/config.js';
import { FIND_LIST, FIND_TABLE } from './shards.js';
import { withSnapshot, type Snapshot } from './snapshot.js';

const database = new UnitDatabase();

const configOf = (settings: Partial<DatabaseConfig> = {}) =>
  patientConfig({ url: database.url, ...settings });

async function readAll(snapshot: Snapshot, sql: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of snapshot.copy(sql)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

describe('a snapshot', () => {
  beforeEach(async () => {
    await database.query(
      'CREATE TABLE rows (id int); INSERT INTO rows SELECT generate_series(1, 3)',
    );
  });

  it('has the rows that were there when it was opened, however often it is read', async () => {
    await withSnapshot(configOf(), 'rows', async (snapshot) => {
      expect(await snapshot.count()).toBe(3);
      await database.query('INSERT INTO rows VALUES (4)');
      expect(await snapshot.count()).toBe(3);
      expect(await readAll(snapshot, 'COPY rows TO STDOUT')).toBe('1\n2\n3\n');
    });
  });

  it('cannot be changed', async () => {
    await expect(
      withSnapshot(configOf(), 'rows', async (snapshot) => {
        await readAll(snapshot, 'COPY (INSERT INTO rows VALUES (5) RETURNING id) TO STDOUT');
      }),
    ).rejects.toThrow();
    expect(await database.query('SELECT count(*)::int AS count FROM rows')).toEqual([{ count: 3 }]);
  });

  it('is not read to its end if a statement failed, even if nobody noticed that', async () => {
    await expect(
      withSnapshot(configOf(), 'rows', async (snapshot) => {
        await readAll(snapshot, 'COPY (SELECT 1 / 0) TO STDOUT').catch(() => undefined);
      }),
    ).rejects.toThrow('the transaction was rolled back');
  });

  it('has no number of rows if counting takes too long, and can be read nevertheless', async () => {
    await withSnapshot(
      configOf({ startTimeout: 1000, timeout: 1000 }),
      '(SELECT pg_sleep(60)) AS slow',
      async (snapshot) => {
        expect(await snapshot.count()).toBeUndefined();
        expect(await readAll(snapshot, 'COPY rows TO STDOUT')).toBe('1\n2\n3\n');
      },
    );
  });

  it('cannot be counted if there is no such table: the error is that of the database', async () => {
    await expect(
      withSnapshot(configOf(), 'nothing', async (snapshot) => void (await snapshot.count())),
    ).rejects.toThrow('relation "nothing" does not exist');
  });

  it('is waited for although the start waits for nothing', async () => {
    await withSnapshot(configOf({ startTimeout: 0 }), 'rows', async (snapshot) => {
      expect(await readAll(snapshot, "COPY (SELECT 'a' FROM pg_sleep(0.1)) TO STDOUT")).toBe('a\n');
    });
  });

  it('ends with its reader, and leaves no timer', async () => {
    const reading = withSnapshot(configOf(), 'rows', async (snapshot) => {
      holdTimers();
      try {
        for await (const _rows of snapshot.copy(
          'COPY (SELECT generate_series(1, 9e6)) TO STDOUT',
        )) {
          expect(jest.getTimerCount()).toBe(0);
          throw new Error('The disk is full');
        }
      } finally {
        jest.useRealTimers();
      }
    });
    await expect(reading).rejects.toThrow('The disk is full');
    await until(async () => (await database.serviceSessions()).length === 0);
  });

  it('is not waited for without an end when the database sends no rows', async () => {
    await expect(
      withSnapshot(configOf({ startTimeout: 1000, timeout: 1000 }), 'rows', async (snapshot) => {
        await readAll(snapshot, 'COPY (SELECT pg_sleep(60)) TO STDOUT');
      }),
    ).rejects.toThrow('Query read timeout');
  });
});

describe('on Citus, a snapshot', () => {
  const SNAPSHOT = 'BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY';
  const LOCK = 'BEGIN ISOLATION LEVEL READ COMMITTED; LOCK TABLE rows IN SHARE MODE';
  const OPEN = 'SET LOCAL citus.max_adaptive_executor_pool_size = 1; SELECT 1 FROM rows LIMIT 1';

  const resources = useResources();

  /** @returns the statements after the question whether the table is distributed, each with the number of its connection */
  async function statementsOf(isDistributed: boolean): Promise<string[]> {
    const server = await openScriptedPostgres(resources, {
      run({ text }) {
        if (text === 'COMMIT') return { command: text };
        if (text === FIND_LIST) return { rows: [{ isThere: true }] };
        return { rows: text === FIND_TABLE && isDistributed ? [{ exists: 1 }] : [] };
      },
    });
    await withSnapshot(configOf({ url: server.url }), 'rows', () => Promise.resolve());
    const asked = server.statements.findIndex(({ text }) => text === FIND_TABLE);
    expect(server.statements[asked]?.values).toEqual(['rows']);
    return server.statements
      .slice(asked + 1)
      .map(({ text, connection }) => `${connection.serial}: ${text}`);
  }

  it('is opened on all servers while nobody writes', async () => {
    expect(await statementsOf(true)).toEqual([
      ...['1: COMMIT', `1: ${SNAPSHOT}`],
      ...[`2: ${LOCK}`, `1: ${OPEN}`, '2: COMMIT'],
      '1: COMMIT',
    ]);
  });

  it('of a table on one server holds up nobody', async () => {
    expect(await statementsOf(false)).toEqual(['1: COMMIT', `1: ${SNAPSHOT}`, '1: COMMIT']);
  });
});
