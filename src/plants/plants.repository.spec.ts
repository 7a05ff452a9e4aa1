import { describe, expect, it } from '@jest/globals';
import { usePlantsDatabase } from '../../test/plants/plants-database.js';

describe('the statement that inserts plants', () => {
  const database = usePlantsDatabase();
  const plants = (...ids: bigint[]) => ids.map((id) => ({ id, name: `plant ${id}` }));

  /** The beginning of the SELECT or VALUES in each statement that was prepared. */
  const prepared = async () => {
    const { rows } = await database.pool.query<{ statement: string }>(
      `SELECT statement FROM pg_prepared_statements WHERE name LIKE 'plant_store%'`,
    );
    return rows.map(({ statement }) => /SELECT|VALUES/.exec(statement)![0]).sort();
  };

  it.each([false, true])(
    'inserts in the order of the ids, so that no two of them deadlock (in one shard: %s)',
    async (areInShard) => {
      const inserted = await database.plants.insert(plants(3n, 1n, 4n, 2n), areInShard);
      expect(inserted).toEqual([1n, 2n, 3n, 4n]);
      expect((await database.stored('ctid')).map(({ id }) => id)).toEqual(['1', '2', '3', '4']);
    },
  );

  it.each([false, true])(
    'reports the plants that were inserted, and changes no others (in one shard: %s)',
    async (areInShard) => {
      await database.plants.insert([{ id: 2n, name: 'b', tag: 'c' }], areInShard);
      const all = [...plants(1n, 2n), { id: 3n, name: 'd', tag: 'e' }];
      expect(await database.plants.insert(all, areInShard)).toEqual([1n, 3n]);
      expect(await database.stored()).toEqual([
        { id: '1', name: 'plant 1' },
        { id: '2', name: 'b', tag: 'c' },
        { id: '3', name: 'd', tag: 'e' },
      ]);
    },
  );

  it.each([false, true])(
    'keeps a tag that is empty apart from a tag that is missing (in one shard: %s)',
    async (areInShard) => {
      await database.plants.insert(
        [
          { id: 1n, name: 'a', tag: '' },
          { id: 2n, name: 'b' },
          { id: 3n, name: 'c', tag: '' },
        ],
        areInShard,
      );
      expect(await database.stored()).toEqual([
        { id: '1', name: 'a', tag: '' },
        { id: '2', name: 'b' },
        { id: '3', name: 'c', tag: '' },
      ]);
    },
  );

  it('is the same for any number of plants, and another one for a plant alone', async () => {
    await database.plants.insert(plants(1n, 2n), false);
    await database.plants.insert(plants(3n, 4n, 5n), false);
    expect(await prepared()).toEqual(['SELECT']);
    await database.plants.insert(plants(6n), false);
    expect(await prepared()).toEqual(['SELECT', 'VALUES']);
  });

  it('lists the plants of one shard as values, for each number of plants', async () => {
    await database.plants.insert(plants(1n, 2n), true);
    await database.plants.insert(plants(3n, 4n, 5n), true);
    expect(await prepared()).toEqual(['VALUES', 'VALUES']);
  });
});
