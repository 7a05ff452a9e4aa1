import { expect, it } from '@jest/globals';
import { readStoredPlants } from '../../test/setup/database/stored-plants.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { PlantEntity } from './plant.entity.js';
import { PlantsRepository } from './plants.repository.js';

const database = new UnitDatabase();

// Without Citus, the service never has several plants of one shard.
it.each([false, true])(
  'inserts the plants whose ids are free, in their order, and reports these (in one shard: %s)',
  async (areInShard) => {
    const dataSource = await database.openWithSchema([PlantEntity]);
    const plants = new PlantsRepository(dataSource.getRepository(PlantEntity));
    await plants.insert([{ id: 2n, name: 'b', tag: 'c' }], areInShard);
    expect(
      await plants.insert(
        [
          { id: 3n, name: 'd', tag: '' },
          { id: 1n, name: 'e' },
          { id: 2n, name: 'x' },
          { id: -4n, name: 'f', tag: 'g' },
        ],
        areInShard,
      ),
    ).toEqual([-4n, 1n, 3n]);
    // In the order in which they were written.
    expect(await readStoredPlants(database, 'ORDER BY ctid')).toEqual([
      { id: '2', name: 'b', tag: 'c' },
      { id: '-4', name: 'f', tag: 'g' },
      { id: '1', name: 'e' },
      { id: '3', name: 'd', tag: '' },
    ]);
  },
);
