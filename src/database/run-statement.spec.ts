import { describe, expect, it, jest } from '@jest/globals';
import { DatabaseError, type PoolClient } from 'pg';
import { ScriptedPool, TIMEOUT_MS } from '../../test/setup/database/scripted-pool.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { settled } from '../../test/setup/time/settled.js';
import { RowsUnavailableError, databaseUnavailable } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';
import { inTransaction, poolOf, prepared, runStatement } from './run-statement.js';

const pool = new ScriptedPool();

const fail = (code: string) => ({ error: { code } });
/** A server that still fails after more attempts than allowed would make a test endless. */
const failAlways = (code: string) => (pool.server.statements.length < 10 ? fail(code) : {});

const unavailable = (cause: object) => ({
  code: databaseUnavailable.code,
  message:
    'The database cannot be reached or does not respond in time. Send the request again in a moment.',
  cause: expect.objectContaining(cause),
});

describe('a statement', () => {
  it('leaves its connection to the next one, without listeners and timers', async () => {
    const dataSource = await pool.start();
    holdTimers();
    const listeners: number[] = [];
    poolOf(dataSource).on('release', (_error: Error, client: PoolClient) => {
      listeners.push(client.listenerCount('notice'), client.listenerCount('error'));
    });
    await runStatement(dataSource, prepared('SELECT 1'), []);
    await runStatement(dataSource, prepared('SELECT 1'), []);
    expect(pool.serials).toEqual([1, 1]);
    // The pool itself listens for the errors of a connection that is idle.
    expect(listeners).toEqual([0, 1, 0, 1]);
    expect(jest.getTimerCount()).toBe(0);
  });

  it('is given up after the time limit, even if it has no connection yet', async () => {
    const arrived = Promise.withResolvers<void>();
    const dataSource = await pool.start(() => {
      arrived.resolve();
      return new Promise(() => undefined);
    });
    holdTimers();
    const states = ['in flight', 'waiting'];
    const outcomes = states.map((_, i) =>
      runStatement(dataSource, prepared('SELECT 1'), []).finally(() => (states[i] = 'over')),
    );
    await arrived.promise;
    jest.advanceTimersByTime(TIMEOUT_MS - 1);
    await settled();
    expect(states).toEqual(['in flight', 'waiting']);
    jest.advanceTimersByTime(1);
    const late = { reason: unavailable({ message: 'it did not respond in time' }) };
    expect(await Promise.allSettled(outcomes)).toMatchObject([late, late]);
  });

  it('succeeds with a warning of another kind', async () => {
    const notices = [
      { code: '01000', routine: 'pg_database_collation_warning' },
      { code: '00000', routine: 'SyncRepWaitForLSN' },
      { code: '01000' },
    ];
    const dataSource = await pool.start(() => ({ notice: notices.shift()! }));
    while (notices.length > 0) await runStatement(dataSource, prepared('INSERT'), []);
    expect(pool.serials).toEqual([1, 1, 1]);
  });

  it.each(['SyncRepWaitForLSN', 'DefaultCitusNoticeReceiver'])(
    'fails once if its commit did not wait for the standbys, as %s reports',
    async (routine) => {
      const dataSource = await pool.start(({ text }) =>
        text === 'INSERT' ? { notice: { code: '01000', routine } } : {},
      );
      await expect(runStatement(dataSource, prepared('INSERT'), [])).rejects.toMatchObject(
        unavailable({ message: 'the wait for a standby was canceled' }),
      );
      await runStatement(dataSource, prepared('SELECT'), []);
      expect(pool.serials).toEqual([1, 2]);
    },
  );
});

describe('a statement that fails', () => {
  const kinds = {
    outage: (error: unknown) =>
      error instanceof ServiceError && !(error instanceof RowsUnavailableError),
    'outage for its rows': (error: unknown) => error instanceof RowsUnavailableError,
    'error of the server': (error: unknown) => error instanceof DatabaseError,
  };

  it.each([
    ['there is a bug', '42601', 1, 'error of the server', 'closed'],
    ['the server cannot take it', '53100', 1, 'outage', 'closed'],
    ['a row is locked', '55P03', 1, 'outage for its rows', 'kept'],
    ['the server ended it', '57014', 1, 'outage', 'kept'],
    ['it lost races', '40P01', 5, 'outage', 'closed'],
  ] as const)(
    'because %s (%s) is sent %i times; it is an %s, and its connection is %s',
    async (_why, code, attempts, kind, end) => {
      const dataSource = await pool.start(({ text }) =>
        text === 'INSERT' ? failAlways(code) : {},
      );
      const error: unknown = await runStatement(dataSource, prepared('INSERT'), []).catch(
        (error: unknown) => error,
      );
      expect(kinds[kind](error)).toBe(true);
      expect(error).toMatchObject(
        kind === 'error of the server' ? { code } : unavailable({ code }),
      );
      await runStatement(dataSource, prepared('SELECT'), []);
      const serials = Array.from({ length: attempts }, (_, i) => i + 1);
      expect(pool.serials).toEqual([...serials, end === 'kept' ? attempts : attempts + 1]);
    },
  );

  it('because it lost races is sent again, on other connections, five times in all', async () => {
    const dataSource = await pool.start(() =>
      pool.server.statements.length < 5 ? fail('40001') : {},
    );
    await runStatement(dataSource, prepared('INSERT'), []);
    expect(pool.serials).toEqual([1, 2, 3, 4, 5]);
  });

  it('because it lost one race after the other is given up after one time limit for all of them', async () => {
    const dataSource = await pool.start(() => {
      jest.advanceTimersByTime(TIMEOUT_MS * 0.4);
      return failAlways('40001');
    });
    holdTimers();
    await expect(runStatement(dataSource, prepared('INSERT'), [])).rejects.toMatchObject(
      unavailable({ message: 'it did not respond in time' }),
    );
    expect(pool.server.statements).toHaveLength(3);
    // No attempt begins after the client has its response.
    await settled();
    expect(pool.server.statements).toHaveLength(3);
  });

  it('because there is no connection for it is reported as an outage, whatever the reason', async () => {
    const dataSource = await pool.start(
      () => fail('42601'),
      1,
      // As of a server that does not know a parameter of the address.
      ({ serial }) => (serial === 1 ? undefined : fail('42704')),
    );
    await expect(runStatement(dataSource, prepared('SELEC'), [])).rejects.toMatchObject({
      code: '42601',
    });
    await expect(runStatement(dataSource, prepared('INSERT'), [])).rejects.toMatchObject(
      unavailable({ code: '42704' }),
    );
  });

  it('because its connection broke is sent again on another one', async () => {
    const dataSource = await pool.start(({ connection, values }) => {
      if (connection.serial === 1) connection.cut();
      return { rows: [{ id: Number(values[0]) }] };
    });
    const { rows } = await runStatement(dataSource, prepared('INSERT'), [7]);
    expect(rows).toEqual([{ id: 7 }]);
    expect(pool.serials).toEqual([1, 2]);
  });
});

describe('a prepared statement', () => {
  it('is parsed once for a connection, and each text has a name of its own', async () => {
    const dataSource = await pool.start();
    for (const text of ['SELECT 1', 'SELECT 1', 'SELECT 2']) {
      await runStatement(dataSource, prepared(text), []);
    }
    expect(pool.server.statements.map(({ isParsed }) => isParsed)).toEqual([true, false, true]);
    // The beginnings of the SHA-256 of the texts: a pooler may give one connection to two versions of the service.
    expect([...new Set(pool.names)]).toEqual([
      'plant_store_e004ebd5b5532a4b',
      'plant_store_ebbb5b332060a3ed',
    ]);
  });

  it.each([
    ['does not know it', '26000'],
    ['has another one of this name', '42P05'],
  ])('is sent unprepared when the server %s, and so are all later ones', async (_why, code) => {
    const dataSource = await pool.start(({ name }) => (name === '' ? {} : fail(code)));
    for (const text of ['SELECT 1', 'SELECT 2']) {
      await runStatement(dataSource, prepared(text), []);
    }
    expect(pool.names).toEqual([expect.stringMatching(/./), '', '']);
  });
});

describe('a transaction', () => {
  it('that fails in a statement is not committed, and reports an outage as one statement does', async () => {
    const dataSource = await pool.start(({ text }) => (text === 'INSERT' ? fail('53100') : {}));
    const outcome = inTransaction(dataSource, (run) => run('INSERT', []));
    await expect(outcome).rejects.toMatchObject(unavailable({ code: '53100' }));
    await pool.server.connections[0]!.closed;
    expect(pool.server.statements.map(({ text }) => text)).not.toContain('COMMIT');
  });
});
