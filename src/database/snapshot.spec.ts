import { beforeEach, describe, expect, it } from '@jest/globals';
import { openScriptedPostgres } from '../../test/setup/database/scripted-postgres.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { until } from '../../test/setup/time/until.js';
import type { DatabaseConfig } from '../config/config.js';
import { FIND_LIST, FIND_TABLE } from './shards.js';
import { copyOut } from './snapshot.js';

const database = new UnitDatabase();

const COPY = 'COPY rows TO STDOUT';

/** More than fits between the server and its reader. */
const MANY = 'COPY (SELECT generate_series(1, 9e6)) TO STDOUT';

const never = () => new AbortController().signal;

const configOf = (settings: Partial<DatabaseConfig> = {}) =>
  patientConfig({ url: database.url, ...settings });

/** Reads what a statement writes. */
async function copy(sql: string, settings: Partial<DatabaseConfig> = {}): Promise<string> {
  const chunks: Buffer[] = [];
  await copyOut(configOf(settings), 'rows', sql, never(), (chunk) => {
    chunks.push(chunk);
    return Promise.resolve();
  });
  return Buffer.concat(chunks).toString();
}

// What an export promises is in export-plants.e2e.ts: this is what no export shows.
describe('rows that are copied out', () => {
  beforeEach(async () => {
    await database.query(
      'CREATE TABLE rows (id int); INSERT INTO rows SELECT generate_series(1, 3)',
    );
  });

  it('cannot be changed', async () => {
    await expect(copy('COPY (INSERT INTO rows VALUES (5) RETURNING id) TO STDOUT')).rejects.toThrow(
      'read-only',
    );
    expect(await copy(COPY)).toBe('1\n2\n3\n');
  });

  it('are waited for although the start waits for nothing', async () => {
    const sql = "COPY (SELECT 'a' FROM pg_sleep(0.1)) TO STDOUT";
    expect(await copy(sql, { startTimeout: 0 })).toBe('a\n');
  });

  it('are not waited for without an end when the database sends none', async () => {
    const sql = 'COPY (SELECT pg_sleep(60)) TO STDOUT';
    await expect(copy(sql, { startTimeout: 1000, timeout: 1000 })).rejects.toThrow(
      'Query read timeout',
    );
  });

  it.each<[string, (abort: () => void) => void, string]>([
    [
      'their reader fails',
      () => {
        throw new Error('The disk is full');
      },
      'The disk is full',
    ],
    ['they are no longer wanted', (abort) => abort(), 'Interrupted'],
  ])('end when %s', async (_when, write, reason) => {
    const controller = new AbortController();
    const abort = () => controller.abort(new Error('Interrupted'));
    const copied = copyOut(configOf(), 'rows', MANY, controller.signal, () =>
      Promise.resolve().then(() => write(abort)),
    );
    await expect(copied).rejects.toThrow(reason);
    await until(async () => (await database.serviceSessions()).length === 0);
  });
});

describe('on Citus, rows that are copied out', () => {
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
        if (text === COPY) return { error: { code: 'XX000', message: 'no rows' } };
        return { rows: text === FIND_TABLE && isDistributed ? [{ exists: 1 }] : [] };
      },
    });
    await expect(copy(COPY, { url: server.url })).rejects.toThrow('no rows');
    const asked = server.statements.findIndex(({ text }) => text === FIND_TABLE);
    expect(server.statements[asked]?.values).toEqual(['rows']);
    return server.statements
      .slice(asked + 1)
      .map(({ text, connection }) => `${connection.serial}: ${text}`);
  }

  it('are those of one moment, for which nobody writes', async () => {
    expect(await statementsOf(true)).toEqual([
      ...['1: COMMIT', `1: ${SNAPSHOT}`],
      ...[`2: ${LOCK}`, `1: ${OPEN}`, '2: COMMIT'],
      `1: ${COPY}`,
    ]);
  });

  it('hold up nobody if the table is on one server', async () => {
    expect(await statementsOf(false)).toEqual(['1: COMMIT', `1: ${SNAPSHOT}`, `1: ${COPY}`]);
  });
});
