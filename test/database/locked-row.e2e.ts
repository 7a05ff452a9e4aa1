import { afterAll, beforeAll, expect, it } from '@jest/globals';
import pg from 'pg';
import { startService, type TestService } from '../setup/service/service.js';

const OTHERS = 50;
const ROUNDS = 2;

let service: TestService;
let locker: pg.Client;

beforeAll(async () => {
  // The server ends a wait for a lock after a tenth of it: the rest is for the others of the batch.
  service = await startService({ DATABASE_TIMEOUT_MS: '10000' });
  locker = new pg.Client({ connectionString: service.database.url });
  await locker.connect();
});
afterAll(async () => {
  await locker.end();
  await service.close();
});

const post = async (id: number) => (await service.post(`{"id":${id},"name":"a"}`)).status;

it('a plant whose row another session has locked is refused, and no other', async () => {
  expect(await post(0)).toBe(200);
  await locker.query('BEGIN; SELECT * FROM plants WHERE id = 0 FOR UPDATE');
  for (let round = 0; round < ROUNDS; round++) {
    const first = 1 + round * OTHERS;
    const others = Array.from({ length: OTHERS }, (_, i) => post(first + i));
    expect(await Promise.all([post(0), ...others])).toEqual([503, ...others.map(() => 200)]);
  }
  await locker.query('ROLLBACK');
  expect(await post(0)).toBe(200);
});
