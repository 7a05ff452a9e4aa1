import { describe, expect, it } from '@jest/globals';
import { ScriptedPool } from '../../test/setup/database/scripted-pool.js';
import { runStatement } from './run-statement.js';

const pool = new ScriptedPool();

const fail = (code: string) => ({ error: { code } });

describe('a prepared statement', () => {
  it('has a name that means this text in every version of the service', async () => {
    const dataSource = await pool.start();
    for (const text of ['SELECT 1', 'SELECT 2']) await runStatement(dataSource, text, []);
    // The beginnings of the SHA-256 of the texts.
    expect(pool.names).toEqual(['plant_store_e004ebd5b5532a4b', 'plant_store_ebbb5b332060a3ed']);
  });

  it('is parsed once for a connection', async () => {
    const dataSource = await pool.start();
    for (let i = 0; i < 2; i++) await runStatement(dataSource, 'SELECT 1', []);
    await runStatement(dataSource, 'SELECT 2', []);
    expect(pool.server.statements.map(({ isParsed }) => isParsed)).toEqual([true, false, true]);
  });

  it.each([
    ['does not know it', '26000'],
    ['has another one of this name', '42P05'],
    ['changed its table', '0A000'],
  ])('is sent unprepared when the server %s, and so are all later ones', async (_why, code) => {
    const dataSource = await pool.start(({ name }) => (name === '' ? {} : fail(code)));
    for (const text of ['SELECT 1', 'SELECT 2']) await runStatement(dataSource, text, []);
    expect(pool.names).toEqual([expect.stringMatching(/./), '', '']);
  });

  it('of another pool is not affected', async () => {
    const dataSource = await pool.start(({ connection, name }) =>
      connection.serial === 1 && name !== '' ? fail('26000') : {},
    );
    await runStatement(dataSource, 'SELECT 1', []);
    await runStatement(await pool.open(), 'SELECT 1', []);
    expect(pool.names).toEqual([expect.stringMatching(/./), '', expect.stringMatching(/./)]);
  });

  it('fails with the error of the server if that remains without preparing it', async () => {
    const dataSource = await pool.start(() =>
      // An endless loop of attempts would end with a success.
      pool.server.statements.length < 10 ? fail('0A000') : {},
    );
    await expect(runStatement(dataSource, 'SELECT 1', [])).rejects.toMatchObject({ code: '0A000' });
    expect(pool.server.statements).toHaveLength(2);
  });

  it('is still prepared after failures of other kinds', async () => {
    const dataSource = await pool.start(() =>
      pool.server.statements.length === 1 ? fail('40001') : {},
    );
    await runStatement(dataSource, 'SELECT 1', []);
    expect(pool.names).not.toContain('');
  });
});
