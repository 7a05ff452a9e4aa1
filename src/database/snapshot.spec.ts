import { beforeEach, describe, expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { readConfig } from '../config/config.js';
import { withSnapshot, type Snapshot } from './snapshot.js';

const database = new UnitDatabase();

const configOf = (startTimeout = 30_000, timeout = 1500) => ({
  ...readConfig({}).database,
  url: database.url,
  startTimeout,
  timeout,
});

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
    await withSnapshot(configOf(), async (snapshot) => {
      expect(await snapshot.count('rows')).toBe(3);
      await database.query('INSERT INTO rows VALUES (4)');
      expect(await snapshot.count('rows')).toBe(3);
      expect(await readAll(snapshot, 'COPY rows TO STDOUT')).toBe('1\n2\n3\n');
    });
  });

  it('cannot be changed', async () => {
    await expect(
      withSnapshot(configOf(), async (snapshot) => {
        await readAll(snapshot, 'COPY (INSERT INTO rows VALUES (5) RETURNING id) TO STDOUT');
      }),
    ).rejects.toThrow();
    expect(await database.query('SELECT count(*)::int AS count FROM rows')).toEqual([{ count: 3 }]);
  });

  it('is not read to its end if a statement failed, even if nobody noticed that', async () => {
    await expect(
      withSnapshot(configOf(), async (snapshot) => {
        await readAll(snapshot, 'COPY (SELECT 1 / 0) TO STDOUT').catch(() => undefined);
      }),
    ).rejects.toThrow('the transaction was rolled back');
  });

  it('has no number of rows if counting takes too long, and can be read nevertheless', async () => {
    await withSnapshot(configOf(200, 100), async (snapshot) => {
      expect(await snapshot.count('(SELECT pg_sleep(60)) AS slow')).toBeUndefined();
      expect(await readAll(snapshot, 'COPY rows TO STDOUT')).toBe('1\n2\n3\n');
    });
  });

  it('cannot be counted if there is no such table: the error is that of the database', async () => {
    await expect(
      withSnapshot(configOf(), async (snapshot) => void (await snapshot.count('nothing'))),
    ).rejects.toThrow('relation "nothing" does not exist');
  });

  it('is not waited for without an end when the database sends no rows', async () => {
    await expect(
      withSnapshot(configOf(200, 100), async (snapshot) => {
        await readAll(snapshot, 'COPY (SELECT pg_sleep(60)) TO STDOUT');
      }),
    ).rejects.toThrow('Query read timeout');
  });
});
