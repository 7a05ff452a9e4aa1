import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const POOL_SIZE = 4;
/** After the first hundred, connections are used again. */
const REFUSED = 200;

describe('while another session has locked the plants', () => {
  let service: TestService;
  let locker: pg.Client;

  beforeAll(async () => {
    service = await startService({
      // The server ends a statement after 80 % of it; the rest is for a busy machine.
      DATABASE_TIMEOUT_MS: '3000',
      DATABASE_POOL_SIZE: String(POOL_SIZE),
      DATABASE_BATCHES: '3',
      DATABASE_BATCH_SIZE: '5',
    });
  });
  beforeEach(async () => {
    locker = new pg.Client({ connectionString: service.database.url });
    await locker.connect();
    await locker.query('BEGIN; LOCK TABLE plants IN ACCESS EXCLUSIVE MODE');
  });
  afterEach(() => locker.end());
  afterAll(() => service.close());

  /** The sessions of the service: the state of each. */
  const sessions = () =>
    service.database.query<{ pid: number; waits: boolean }>(
      `SELECT pid, wait_event_type IS NOT DISTINCT FROM 'Lock' AS waits FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'plant-store' AND backend_type = 'client backend'`,
    );

  let id = 0;
  const post = async () => (await service.post(`{"id":${++id},"name":"a"}`)).status;

  it('a statement that timed out does not wait at the server any more', async () => {
    expect(await post()).toBe(503);
    await until(async () => (await sessions()).every(({ waits }) => !waits));
  });

  it('a hundred clients use no more sessions than the pool has', async () => {
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
    await Promise.all(Array.from({ length: 100 }, client));
    expect(most).toBeLessThanOrEqual(POOL_SIZE);
    await locker.query('ROLLBACK');
    expect(await post()).toBe(200);
  });
});
