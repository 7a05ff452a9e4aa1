import { beforeEach, expect, it } from '@jest/globals';
import { Column, Entity, PrimaryColumn } from 'typeorm';
import { patientConfig } from '../../test/setup/database/patient.js';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { until } from '../../test/setup/time/until.js';
import { withRepository } from './with-repository.js';

@Entity('things')
class Thing {
  @PrimaryColumn('int')
  id: number;

  @Column('text')
  name: string;
}

const database = new UnitDatabase();

const config = () => patientConfig({ url: database.url });

beforeEach(() =>
  database.query(
    "CREATE TABLE things (id int PRIMARY KEY, name text); INSERT INTO things VALUES (1, 'a')",
  ),
);

it('an action gets the rows of an entity, and its result is returned', async () => {
  const found = await withRepository(config(), Thing, (things) => things.find());
  expect(found).toEqual([{ id: 1, name: 'a' }]);
});

it('the connections of an action that fails are closed, too', async () => {
  const failing = withRepository(config(), Thing, async (things) => {
    await things.find();
    expect(await database.serviceSessions()).toHaveLength(1);
    throw new Error('the reason');
  });
  await expect(failing).rejects.toThrow('the reason');
  // The server may notice the end of a connection a little later.
  await until(async () => (await database.serviceSessions()).length === 0);
});
