import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { startService, type StoredPlant, type TestService } from './setup/service.js';

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

it('992 real plants, with ids beyond 2^53, are stored exactly, and are unchanged when all are sent again', async () => {
  const file = await readFile(new URL('./fixtures/plants.csv', import.meta.url), 'utf8');
  const plants = file
    .trimEnd()
    .split('\n')
    .slice(1)
    .map((line) => line.split(',') as [string, string, string])
    .map(([id, name, tag]): StoredPlant => ({ id, name, tag: tag === '' ? null : tag }));
  expect(plants).toHaveLength(992);
  const byId = plants.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));

  for (const _round of [1, 2]) {
    // A hundred at a time: a busy machine refuses a thousand at once, as it should.
    for (let from = 0; from < plants.length; from += 100) {
      const responses = await Promise.all(
        plants.slice(from, from + 100).map(({ id, name, tag }) => {
          const rest = JSON.stringify(tag === null ? { name } : { name, tag }).slice(1);
          return service.post(`{"id":${id},${rest}`);
        }),
      );
      expect(responses.filter((response) => response.status !== 200)).toEqual([]);
    }
    expect(await service.storedPlants()).toEqual(byId);
  }
});
