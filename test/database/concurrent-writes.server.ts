import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop, type BuiltService } from '../setup/service/built-service.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { metricAt } from '../setup/service/metrics.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';

describe('a service, while other sessions write the same plants', () => {
  let server: PostgresServer;
  let token: string;
  let first: pg.Client;
  let second: pg.Client;
  let third: pg.Client;

  beforeAll(async () => {
    server = await startPostgresServer();
    token = await createToken(server.url);
  });
  beforeEach(async () => {
    [first, second, third] = await Promise.all([connect(), connect(), connect()]);
    await server.query('TRUNCATE plants');
  });
  afterEach(() => Promise.all([first.end(), second.end(), third.end()]));
  afterAll(() => server.close());

  async function connect(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    return client;
  }

  const insert = (id: number) => `INSERT INTO plants (id, name) VALUES (${id}, 'other')`;

  /** Waits until this many statements wait for a row of another transaction. */
  async function blocked(count: number): Promise<void> {
    const sql = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await until(async () => (await server.query(sql)).length >= count);
  }

  /** Waits until this many plants are in the queue for a batch. */
  async function queued({ url }: BuiltService, count: number): Promise<void> {
    const waiting = () => metricAt(url, 'plant_store_batch_waiting', { token });
    await until(async () => (await waiting()) === count);
  }

  async function deadlocks(): Promise<number> {
    const [row] = await server.query<{ deadlocks: number }>(
      'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return row!.deadlocks;
  }

  it('stores all plants of a batch whose statement Postgres aborted because of a deadlock', async () => {
    const service = await startOn(server.url, { DATABASE_TIMEOUT_MS: '30000' });
    const before = await deadlocks();
    await first.query(`BEGIN; ${insert(1)}`);
    await second.query(`BEGIN; ${insert(15)}`);
    // Postgres aborts the session that finds the deadlock. A session looks once, a second after it began to wait, and this one
    // after a minute. The service begins to wait last, so it finds the deadlock.
    await third.query(`SET deadlock_timeout = '1min'; BEGIN; ${insert(20)}`);
    const alone = postPlant(service.url, token, 1);
    await blocked(1);
    const batch = [10, 15, 20].map((id) => postPlant(service.url, token, id));
    await queued(service, 3);
    await first.query('ROLLBACK');
    expect((await alone).status).toBe(200);
    // The batch has inserted 10, and waits for 15.
    await blocked(1);
    const release = async () => {
      await blocked(2);
      // Now the batch inserts 15, and waits for 20, whose session waits for 10.
      await second.query('ROLLBACK');
    };
    await Promise.all([third.query(insert(10)), release()]);
    await third.query('ROLLBACK');
    const responses = await Promise.all(batch);
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    await until(async () => (await deadlocks()) !== before);
    await stop(service);
  });

  it('runs a statement again after a serialization failure', async () => {
    const isolation = encodeURIComponent('-c default_transaction_isolation=repeatable\\ read');
    const service = await startOn(`${server.url}?options=${isolation}`);
    await first.query(`BEGIN; ${insert(1)}`);
    const response = postPlant(service.url, token, 1);
    await blocked(1);
    await first.query('COMMIT');
    expect((await response).status).toBe(400);
    expect(await (await response).json()).toMatchObject({ error: 40006 });
    await stop(service);
  });

  it('never causes a deadlock with another service, in whatever order plants arrive', async () => {
    const before = await deadlocks();
    const services = await Promise.all([startOn(server.url), startOn(server.url)]);
    for (let round = 0; round < 40; round++) {
      const ids = Array.from({ length: 60 }, (_, i) => round * 60 + i);
      const responses = await Promise.all([
        ...ids.map((id) => postPlant(services[0].url, token, id)),
        ...ids.toReversed().map((id) => postPlant(services[1].url, token, id)),
      ]);
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    }
    for (const service of services) await stop(service);
    expect(await server.query('SELECT 1 FROM plants')).toHaveLength(2400);
    expect(await deadlocks()).toBe(before);
  });
});
