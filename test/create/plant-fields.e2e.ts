import { createReadStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { getMetadataArgsStorage } from 'typeorm';
import { readPlantLines } from '../../src/cli/plant-lines.js';
import { NewPlant } from '../../src/plants/dto/plant.js';
import { PLANT_FIELDS } from '../../src/plants/plant-fields.js';
import { PlantEntity } from '../../src/plants/plant.entity.js';
import { PlantsRepository } from '../../src/plants/plants.repository.js';
import { runInProcess } from '../setup/service/cli.js';
import { verdictOn } from '../setup/model/contract-oracle.js';
import { startService, type TestService } from '../setup/service/service.js';

/** The columns of the table that clients know. */
const FIELDS = getMetadataArgsStorage()
  .columns.filter(({ target }) => target === PlantEntity)
  .map(({ propertyName }) => propertyName)
  .filter((name) => name !== 'createdAt')
  .sort();

/** Each text is the name of its field. */
const TEXTS = Object.fromEntries(FIELDS.filter((it) => it !== 'id').map((name) => [name, name]));

/** An empty text is not a missing one. */
const EMPTY = Object.fromEntries(Object.keys(TEXTS).map((name) => [name, '']));

const bodyOf = (id: string, texts = TEXTS) => `{"id":${id},${JSON.stringify(texts).slice(1)}`;

/** The title of a test that fails for a new column names the file that does not know it. */
describe('each column of a plant, as plant.entity.ts has them, is known to', () => {
  let service: TestService;
  let folder: string;

  beforeAll(async () => {
    service = await startService();
    folder = await mkdtemp(join(tmpdir(), 'plant-store-fields-'));
  });
  beforeEach(() => service.database.query('TRUNCATE plants'));
  afterAll(async () => {
    await rm(folder, { recursive: true });
    await service.close();
  });

  const stored = async () => {
    const rows = await service.database.query<{ texts: object }>(
      `SELECT to_jsonb(plants) - 'id' - 'created_at' AS texts FROM plants ORDER BY plants.id`,
    );
    return rows.map(({ texts }) => texts);
  };

  it('plant-fields.ts, from which readiness, export and load have the columns', () => {
    expect(PLANT_FIELDS.toSorted()).toEqual(FIELDS);
  });

  it('dto/plant.ts', () => {
    expect(Object.keys(new NewPlant()).sort()).toEqual(FIELDS);
  });

  it.each([
    ['a plant, or those of one shard', true],
    ['plants', false],
  ])('the statement of plants.repository.ts that inserts %s', async (_which, areInShard) => {
    const plants = [
      { ...TEXTS, id: 1n },
      { ...EMPTY, id: 2n },
    ] as unknown as NewPlant[];
    await service.app.get(PlantsRepository).insert(plants, areInShard);
    expect(await stored()).toEqual([TEXTS, EMPTY]);
  });

  const insert = () =>
    service.database.query(
      `INSERT INTO plants SELECT * FROM jsonb_populate_record(NULL::plants, $1)`,
      [JSON.stringify({ ...TEXTS, id: 1, created_at: 'now' })],
    );

  it('the statement of plants.repository.ts that finds plants', async () => {
    await insert();
    expect(await service.app.get(PlantsRepository).find([1n])).toEqual([{ ...TEXTS, id: '1' }]);
  });

  // Whether it compares each of them is in idempotent-create.e2e.ts.
  it('the response of plants.service.ts, if it was sent', async () => {
    for (const _time of ['created', 'repeated']) {
      expect(await service.post(bodyOf('1'))).toMatchObject({ status: 200, body: TEXTS });
      expect(await service.post(bodyOf('2', EMPTY))).toMatchObject({ status: 200, body: EMPTY });
    }
    expect(await stored()).toEqual([TEXTS, EMPTY]);
  });

  it.each(['plants.csv', 'plants.ndjson'])(
    'plant-format.ts, which writes %s, and plant-lines.ts, which reads it',
    async (file) => {
      await insert();
      const env = { DATABASE_URL: service.proxy.url, PLANT_STORE_CALLER_DIR: folder };
      expect(await runInProcess(['plants', 'export', file], env)).toMatchObject({ exitCode: 0 });
      const lines = readPlantLines(createReadStream(join(folder, file)), file);
      expect(await Array.fromAsync(lines)).toMatchObject([{ plant: { ...TEXTS, id: 1n } }]);
    },
  );

  it('contract-oracle.ts, by which the properties check', () => {
    expect(verdictOn(Buffer.from(bodyOf('1')), 4096)).toEqual({ plant: { ...TEXTS, id: '1' } });
  });
});
