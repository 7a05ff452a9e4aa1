import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from './setup/service.js';

describe('POST /plants', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('stores a plant with a tag and answers name and tag, never the id', async () => {
    const answer = await service.post('{"id": 1, "name": "Acer × rubrum é", "tag": "Acer"}');
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ name: 'Acer × rubrum é', tag: 'Acer' });
    expect(await service.storedPlants()).toEqual([{ id: '1', name: 'Acer × rubrum é', tag: 'Acer' }]);
  });
});
