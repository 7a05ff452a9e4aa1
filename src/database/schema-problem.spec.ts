import { beforeEach, describe, expect, it } from '@jest/globals';
import { EntitySchema, type DataSource } from 'typeorm';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { ScriptedPool } from '../../test/setup/database/scripted-pool.js';
import { ErrorCode } from '../errors/error-codes.js';
import { schemaProblem, type NeededPrivilege } from './schema-problem.js';

const tree = new EntitySchema<object>({
  name: 'trees',
  columns: { id: { type: 'int', primary: true }, name: { type: 'text' } },
});

const NEEDED: NeededPrivilege[] = [
  { entity: tree, privilege: 'SELECT', columns: ['id', 'name'] },
  { entity: tree, privilege: 'INSERT', columns: ['id'] },
];

class Plant1000000000000 {
  up = () => Promise.resolve();
  down = () => Promise.resolve();
}
class Grow2000000000000 extends Plant1000000000000 {}

describe('schemaProblem', () => {
  const database = new UnitDatabase();
  let dataSource: DataSource;

  beforeEach(async () => {
    await database.query(
      `CREATE TABLE trees (id int PRIMARY KEY, name text);
       CREATE TABLE migrations (name text);
       INSERT INTO migrations VALUES ('Plant1000000000000'), ('Grow2000000000000')`,
    );
    dataSource = await database.open({
      entities: [tree],
      migrations: [Plant1000000000000, Grow2000000000000],
    });
  });

  const problem = () => schemaProblem(dataSource, NEEDED);
  const lacks = (what: string) =>
    `The database lacks what a migration made: ${what}. Restore it, or correct search_path in DATABASE_URL.`;
  const forbids = (what: string) =>
    `The role of the service may not do this in the database: ${what}. Grant it.`;
  const becomeGardener = async (grants: string) => {
    await database.query(
      `DROP ROLE IF EXISTS gardener; CREATE ROLE gardener;
       GRANT USAGE ON SCHEMA public TO gardener; GRANT SELECT ON migrations TO gardener; ${grants}`,
    );
    await dataSource.query('SET ROLE gardener');
  };

  it('finds none in a schema that has all that requests need', async () => {
    expect(await problem()).toBeUndefined();
  });

  it('finds none in a schema that is newer', async () => {
    await database.query(`INSERT INTO migrations VALUES ('Later'); ALTER TABLE trees ADD age int`);
    expect(await problem()).toBeUndefined();
  });

  it('finds that the newest migration has not run', async () => {
    await database.query(`DELETE FROM migrations WHERE name = 'Grow2000000000000'`);
    expect(await problem()).toBe(
      'The schema of the database is behind this version of the service: run its migrations.',
    );
  });

  it.each([
    ['the list of migrations', 'DROP TABLE migrations', 'migrations'],
    ['a table, named once', 'DROP TABLE trees', 'trees'],
    ['a column', 'ALTER TABLE trees DROP name', 'trees.name'],
    [
      'the key that makes inserts idempotent',
      'ALTER TABLE trees DROP CONSTRAINT trees_pkey',
      'the primary key of trees',
    ],
    [
      'several things',
      'ALTER TABLE trees DROP name, DROP CONSTRAINT trees_pkey',
      'the primary key of trees, trees.name',
    ],
  ])('finds that the database lacks %s', async (_what, sql, what) => {
    await database.query(sql);
    expect(await problem()).toBe(lacks(what));
  });

  it.each([
    ['all', 'GRANT SELECT ON migrations TO gardener', 'INSERT on trees, SELECT on trees'],
    ['one column', 'GRANT SELECT (id), INSERT ON trees TO gardener', 'SELECT on trees'],
  ])('finds what the role may not do (%s)', async (_what, grants, what) => {
    await becomeGardener(grants);
    expect(await problem()).toBe(forbids(what));
  });

  it('needs no right to other columns than those that requests use', async () => {
    await becomeGardener('GRANT SELECT (id, name), INSERT (id) ON trees TO gardener');
    expect(await problem()).toBeUndefined();
  });

  it('reports a read-only database as an outage, whatever its schema', async () => {
    await database.query('DELETE FROM migrations');
    await dataSource.query('SET default_transaction_read_only = on');
    await expect(problem()).rejects.toMatchObject({
      code: ErrorCode.databaseUnavailable,
      message: 'The database is read-only, as a standby or a former primary is after a failover.',
    });
  });
});

describe('schemaProblem, on a server that fails', () => {
  const pool = new ScriptedPool();
  const problemFor = async (code: string) =>
    schemaProblem(await pool.start(() => ({ error: { code, message: 'denied' } })), []);

  it.each(['42501', '28P01'])('says that the server refuses the service (%s)', async (code) => {
    expect(await problemFor(code)).toBe(`The database refuses the service: denied (${code}).`);
  });

  it('reports an outage as such, for which no operator needs to change something', async () => {
    await expect(problemFor('53300')).rejects.toMatchObject({
      code: ErrorCode.databaseUnavailable,
      cause: { code: '53300' },
    });
  });

  it('does not hide a bug', async () => {
    await expect(problemFor('42601')).rejects.toMatchObject({ code: '42601' });
  });
});
