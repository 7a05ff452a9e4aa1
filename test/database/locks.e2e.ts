import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const POOL_SIZE = 4;
const CLIENTS = 20;
/** Several for each connection, which would be replaced each time. */
const REFUSED = 40;

describe('while another session has locked', () => {
  let service: TestService;
  let locker: pg.Client;

  beforeAll(async () => {
    service = await startService({
      // The server ends a wait for a lock after a tenth of it; the rest is for a busy machine.
      DATABASE_TIMEOUT_MS: '3000',
      DATABASE_POOL_SIZE: String(POOL_SIZE),
      DATABASE_BATCHES: '3',
      DATABASE_BATCH_SIZE: '5',
    });
  });
  beforeEach(async () => {
    locker = new pg.Client({ connectionString: service.database.url });
    await locker.connect();
  });
  afterEach(() => locker.end());
  afterAll(() => service.close());

  /** The sessions of the service: whether each waits for a lock. */
  const sessions = () =>
    service.database.query<{ waits: boolean }>(
      `SELECT wait_event_type IS NOT DISTINCT FROM 'Lock' AS waits FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'plant-store' AND backend_type = 'client backend'`,
    );

  let lastId = 0;
  const post = async (id = ++lastId) => (await service.post(`{"id":${id},"name":"a"}`)).status;

  it('a row, its plant is refused, and no other', async () => {
    expect(await post(0)).toBe(200);
    await locker.query('BEGIN; SELECT * FROM plants WHERE id = 0 FOR UPDATE');
    const others = Array.from({ length: CLIENTS }, () => post());
    expect(await Promise.all([post(0), ...others])).toEqual([503, ...others.map(() => 200)]);
    await locker.query('ROLLBACK');
    expect(await post(0)).toBe(200);
  });

  it('the table, plants are refused, and no statement waits at the server any more', async () => {
    await locker.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    expect(await post()).toBe(503);
    await until(async () => (await sessions()).every(({ waits }) => !waits));
  });

  it('the table, many clients use no more sessions than the pool has', async () => {
    await locker.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
    let most = 0;
    let refused = 0;
    const client = async () => {
      while (refused < REFUSED) {
        expect(await post()).toBe(503);
        refused++;
        // A session that its statement outlived is still there when the next one has taken its place.
        const { length } = await sessions();
        most = Math.max(most, length);
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, client));
    expect(most).toBeLessThanOrEqual(POOL_SIZE);
    await locker.query('ROLLBACK');
    expect(await post()).toBe(200);
  });
});
