import { describe, expect, it } from '@jest/globals';
import { DataSource } from 'typeorm';
import { makeHostile } from '../../test/setup/database/hostile-settings.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { openScriptedPostgres, type Script } from '../../test/setup/database/scripted-postgres.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { databaseOptions } from './database-options.js';
import { inTransaction, poolOf, runStatement } from './run-statement.js';
import { BEGIN_SESSION, localSettingsOf } from './session.js';
import { FIND_LIST } from './shards.js';
import { copyOut } from './snapshot.js';

const resources = useResources();

async function open(url: string): Promise<DataSource> {
  const options = databaseOptions(patientConfig({ url }), { statement: 700, lock: 0 });
  const extra = { ...options.extra, query_timeout: 1500, idleTimeoutMillis: 0 };
  const dataSource = await new DataSource({ ...options, extra }).initialize();
  resources.defer(() => dataSource.destroy());
  return dataSource;
}

describe('a session', () => {
  const database = new UnitDatabase();

  it('has our settings, whatever the database gives its sessions', async () => {
    const name = /\/(\w+)(\?|$)/.exec(database.url)![1]!;
    await makeHostile((sql) => database.query(sql), `DATABASE ${name}`);
    const dataSource = await open(database.url);
    const { rows } = await runStatement(
      dataSource,
      `SELECT current_setting('client_min_messages') AS "messages", current_setting('synchronous_commit') AS "commit",
         current_setting('transaction_isolation') AS isolation, current_setting('statement_timeout') AS statement,
         current_setting('lock_timeout') AS lock, coalesce(current_setting('transaction_timeout', true), '0') AS transaction,
         current_setting('idle_session_timeout') AS idle,
         current_setting('idle_in_transaction_session_timeout') AS "idleInTransaction",
         current_setting('exit_on_error') AS "exits"`,
      [],
    );
    expect(rows).toEqual([
      {
        messages: 'warning',
        commit: 'on',
        isolation: 'read committed',
        statement: '700ms',
        lock: '0',
        transaction: '0',
        idle: '0',
        idleInTransaction: '0',
        exits: 'off',
      },
    ]);
  });

  it('without a pooler has our settings once for all its transactions', async () => {
    const client = await poolOf(await open(database.url)).connect();
    try {
      expect(localSettingsOf(client)).toBeUndefined();
    } finally {
      client.release();
    }
  });

  it('waits for what its database wants it to wait for, if that is more', async () => {
    await database.set('synchronous_commit', 'remote_apply');
    const dataSource = await open(database.url);
    const { rows } = await runStatement(dataSource, 'SHOW synchronous_commit', []);
    expect(rows).toEqual([{ synchronous_commit: 'remote_apply' }]);
  });
});

/** A pooler: its number of the session is not that of the server. */
const pooler = (run?: Script['run']): Script => ({
  settings: {
    [BEGIN_SESSION]: [
      { isOwn: false, name: 'a', value: '1' },
      { isOwn: false, name: 'b', value: 'x y' },
    ],
  },
  run,
});

const BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL a = '1'; SET LOCAL b = 'x y'";

describe('behind a pooler', () => {
  const textsOf = ({ statements }: { statements: readonly { text: string }[] }) =>
    statements.map(({ text }) => text);

  it('every statement has a transaction with our settings', async () => {
    const server = await openScriptedPostgres(resources, pooler());
    const dataSource = await open(server.url);
    await runStatement(dataSource, 'INSERT', [1]);
    expect(textsOf(server)).toEqual([BEGIN, 'INSERT', 'COMMIT']);
  });

  it('a statement that fails, fails with its own error', async () => {
    const server = await openScriptedPostgres(
      resources,
      pooler(({ text }) => (text === 'INSERT' ? { error: { code: '42601' } } : undefined)),
    );
    const dataSource = await open(server.url);
    await expect(runStatement(dataSource, 'INSERT', [1])).rejects.toMatchObject({ code: '42601' });
  });

  it.each(['BEGIN', 'COMMIT'])('a statement whose %s fails, fails', async (word) => {
    const server = await openScriptedPostgres(
      resources,
      pooler(({ text }) => (text.startsWith(word) ? { error: { code: '53100' } } : undefined)),
    );
    const dataSource = await open(server.url);
    await expect(runStatement(dataSource, 'INSERT', [1])).rejects.toMatchObject({
      cause: { code: '53100' },
    });
  });

  it('a longer transaction has our settings, too', async () => {
    const server = await openScriptedPostgres(resources, pooler());
    const dataSource = await open(server.url);
    await inTransaction(dataSource, async (run) => {
      await run('INSERT', [1]);
      await run('UPDATE', [2]);
    });
    expect(textsOf(server)).toEqual([BEGIN, 'INSERT', 'UPDATE', 'COMMIT']);
  });

  it('a snapshot has our settings from its beginning', async () => {
    const server = await openScriptedPostgres(resources, pooler());
    const aborted = AbortSignal.abort(new Error('read'));
    const config = patientConfig({ url: server.url });
    const ended = copyOut(config, 'rows', 'COPY rows TO STDOUT', aborted, () => Promise.resolve());
    await expect(ended).rejects.toThrow('read');
    expect(textsOf(server)).toEqual([
      ...[BEGIN, FIND_LIST, 'COMMIT'],
      BEGIN.replace('READ COMMITTED', 'REPEATABLE READ, READ ONLY'),
    ]);
  });
});

it('a database without such settings is used as it is', async () => {
  const server = await openScriptedPostgres(resources, {
    settings: { [BEGIN_SESSION]: { code: '42883' } },
  });
  const dataSource = await open(server.url);
  await runStatement(dataSource, 'INSERT', [1]);
  expect(server.statements).toMatchObject([{ text: 'INSERT' }]);
});

it('a session that cannot get our settings is closed', async () => {
  const server = await openScriptedPostgres(resources, {
    settings: { [BEGIN_SESSION]: { code: '57014' } },
  });
  await expect(open(server.url)).rejects.toMatchObject({ code: '57014' });
  await server.connections[0]!.closed;
});
