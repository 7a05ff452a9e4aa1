import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import {
  postPlant,
  startOn,
  stop,
  stopUnderLoad,
  type BuiltService,
} from '../setup/service/built-service.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { startLoad, stopLoads } from '../setup/model/load.js';
import { metricAt } from '../setup/service/metrics.js';
import { childrenOf } from '../setup/service/processes.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { isReady } from '../setup/service/is-ready.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';

afterEach(stopLoads);

describe('a service on a server that fails', () => {
  let server: PostgresServer;
  let service: BuiltService;
  let token: string;

  beforeAll(async () => {
    server = await startPostgresServer();
    token = await createToken(server.url);
    service = await startOn(server.url);
  });
  afterAll(async () => {
    await stop(service);
    await server.close();
  });

  let serial = 0;
  const post = () => postPlant(service, token, --serial);
  const recovered = async () => {
    await until(async () => (await post()).status === 200);
  };

  async function expectNothingLost(acknowledged: ReadonlySet<string>) {
    const rows = await server.query<{ id: string }>('SELECT id::text AS id FROM plants');
    const stored = new Set(rows.map(({ id }) => id));
    expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([]);
  }

  it('killed under load: 503, recovery by itself, and no acknowledged plant is missing', async () => {
    const load = startLoad(() => service.url, token);
    for (let round = 0; round < 3; round++) {
      await load.progress(300);
      await server.kill();
      await server.start();
      await recovered();
    }
    await load.progress(300);
    await load.stop();
    expect([...load.failures.keys()].filter((status) => status !== 503)).toEqual([]);
    await expectNothingLost(load.acknowledged);
  });

  it('frozen under load: 503, recovery by itself, and no acknowledged plant is missing', async () => {
    const load = startLoad(() => service.url, token);
    await load.progress(300);
    await server.freeze();
    expect((await post()).status).toBe(503);
    await server.thaw();
    await recovered();
    await load.progress(300);
    await load.stop();
    expect([...load.failures.keys()].filter((status) => status !== 503)).toEqual([]);
    await expectNothingLost(load.acknowledged);
  });

  it('frozen: the service still stops gracefully', async () => {
    const other = await startOn(server.url);
    await fetchDocumented(`${other.url}/health/ready`);
    await server.freeze();
    await stop(other);
    await server.thaw();
    await recovered();
  });

  it('frozen with requests in flight: the service still responds to them, and stops gracefully', async () => {
    const other = await startOn(server.url);
    expect((await postPlant(other, token, --serial)).status).toBe(200);
    await server.freeze();
    const responses = Array.from({ length: 50 }, () => postPlant(other, token, --serial));
    await until(async () => (await metricAt(other.url, 'plant_store_pending_requests')) === 50);
    await stopUnderLoad(other);
    expect(new Set((await Promise.all(responses)).map(({ status }) => status))).toEqual(
      new Set([503]),
    );
    await server.thaw();
    await recovered();
  });

  const disconnectAll = () =>
    server.administer(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()',
    );

  it('that ends a connection during a statement: the statement runs again', async () => {
    const locker = new pg.Client({ connectionString: server.url });
    await locker.connect();
    await locker.query('BEGIN; LOCK TABLE plants IN SHARE MODE');
    const response = post();
    const terminate = () =>
      server.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO plants%'`,
      );
    await until(async () => (await terminate()).length > 0);
    await locker.query('COMMIT');
    await locker.end();
    expect((await response).status).toBe(200);
  });

  it('read-only, as a former primary is after a failover: 503, then recovery', async () => {
    await recovered();
    await server.administer('ALTER DATABASE plants_test SET default_transaction_read_only = on');
    await disconnectAll();
    await until(async () => (await post()).status !== 200);
    const response = await post();
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ error: 50300 });
    await until(async () => (await fetchDocumented(`${service.url}/health/ready`)).status !== 200);
    await server.administer('ALTER DATABASE plants_test RESET default_transaction_read_only');
    await disconnectAll();
    await recovered();
  });

  it('out of connections: 503, then recovery', async () => {
    await server.administer('CREATE ROLE visitor LOGIN IN ROLE plants');
    const other = await startOn(server.url.replace('plants@', 'visitor@'));
    await server.administer('ALTER DATABASE plants_test CONNECTION LIMIT 0');
    await disconnectAll();
    const ready = () => fetchDocumented(`${other.url}/health/ready`);
    await until(async () => (await ready()).status !== 200);
    expect(await (await ready()).json()).toMatchObject({ error: 50300 });
    await server.administer('ALTER DATABASE plants_test CONNECTION LIMIT -1');
    await until(async () => (await ready()).status === 200);
    await stop(other);
  });
});

describe('a service, while other sessions write the same plants', () => {
  let server: PostgresServer;
  let token: string;
  let other: pg.Client;
  let another: pg.Client;

  beforeAll(async () => {
    server = await startPostgresServer();
    token = await createToken(server.url);
  });
  beforeEach(async () => {
    [other, another] = await Promise.all([connect(), connect()]);
    await server.query('TRUNCATE plants');
  });
  afterEach(() => Promise.all([other.end(), another.end()]));
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
    for (;;) {
      const response = await fetchDocumented(`${url}/metrics`, {
        headers: { authorization: `Bearer ${token}` },
      });
      if (new RegExp(`^plant_store_batch_waiting ${count}$`, 'm').test(await response.text()))
        return;
    }
  }

  async function deadlocks(): Promise<number> {
    const [row] = await server.query<{ deadlocks: number }>(
      'SELECT deadlocks::int AS deadlocks FROM pg_stat_database WHERE datname = current_database()',
    );
    return row!.deadlocks;
  }

  it('stores all plants of a batch whose statement Postgres aborted because of a deadlock', async () => {
    const service = await startOn(server.url, { DATABASE_TIMEOUT_MS: '10000' });
    const before = await deadlocks();
    await other.query(`BEGIN; ${insert(1)}`);
    // Postgres aborts the session that first checks for a deadlock. `another` checks only after a minute, so the
    // statement of the service is aborted.
    await another.query(`SET deadlock_timeout = '1min'; BEGIN; ${insert(20)}`);
    const first = postPlant(service, token, 1);
    await blocked(1);
    const rest = [10, 20].map((id) => postPlant(service, token, id));
    await queued(service, 2);
    await other.query('ROLLBACK');
    expect(await first).toMatchObject({ status: 200 });
    // The batch holds 10 and waits for 20; the other session holds 20 and waits for 10.
    await blocked(1);
    await another.query(insert(10));
    await another.query('ROLLBACK');
    expect(await Promise.all(rest)).toMatchObject([{ status: 200 }, { status: 200 }]);
    await until(async () => (await deadlocks()) !== before);
    await stop(service);
  });

  it('runs a statement again after a serialization failure', async () => {
    const isolation = encodeURIComponent('-c default_transaction_isolation=repeatable\\ read');
    const service = await startOn(`${server.url}?options=${isolation}`);
    await other.query(`BEGIN; ${insert(1)}`);
    const response = postPlant(service, token, 1);
    await blocked(1);
    await other.query('COMMIT');
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
        ...ids.map((id) => postPlant(services[0], token, id)),
        ...ids.toReversed().map((id) => postPlant(services[1], token, id)),
      ]);
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]));
    }
    for (const service of services) await stop(service);
    expect(await server.query('SELECT 1 FROM plants')).toHaveLength(2400);
    expect(await deadlocks()).toBe(before);
  });
});

describe('a rolling restart of two replicas under load', () => {
  it.each(['1', '2'])('loses no request, with %s process(es) each', async (workers) => {
    const server = await startPostgresServer();
    try {
      const token = await createToken(server.url);
      const start = () =>
        startOn(server.url, { SHUTDOWN_DELAY_MS: '500', WEB_CONCURRENCY: workers });
      let replicas = await Promise.all([start(), start()]);
      // A load balancer: it checks readiness all the time, and sends requests only to replicas that are ready.
      let ready = replicas.map(({ url }) => url);
      let isChecking = true;
      const checking = (async () => {
        while (isChecking) {
          const checks = await Promise.all(replicas.map(({ url }) => isReady(url)));
          ready = replicas.map(({ url }) => url).filter((_, i) => checks[i]);
          await new Promise(setImmediate);
        }
      })();
      let turn = 0;
      const load = startLoad(() => ready[turn++ % ready.length]!, token);
      for (let round = 0; round < 4; round++) {
        await load.progress(200);
        const [oldest, other] = replicas;
        await stopUnderLoad(oldest);
        replicas = [other, await start()];
        await until(() => ready.length === 2);
      }
      await load.progress(200);
      await load.stop();
      isChecking = false;
      await checking;
      expect(load.failures).toEqual(new Map());
      const rows = await server.query<{ count: number }>(
        'SELECT count(*)::int AS count FROM plants',
      );
      expect(rows).toEqual([{ count: load.acknowledged.size }]);
      for (const replica of replicas) await stop(replica);
    } finally {
      await server.close();
    }
  });
});

describe('several workers under load', () => {
  it('use no more connections than the pool has, and each uses at least one', async () => {
    const server = await startPostgresServer();
    try {
      const token = await createToken(server.url);
      const workers = 3;
      const poolSize = 5;
      const service = await startOn(server.url, {
        WEB_CONCURRENCY: String(workers),
        DATABASE_POOL_SIZE: String(poolSize),
        DATABASE_BATCHES: '5',
        DATABASE_BATCH_SIZE: '1',
      });
      const load = startLoad(() => service.url, token, 64);
      let most = 0;
      for (let round = 0; round < 20; round++) {
        await load.progress(100);
        const [{ count } = { count: 0 }] = await server.query<{ count: number }>(
          "SELECT count(*)::int AS count FROM pg_stat_activity WHERE application_name = 'plant-store'",
        );
        most = Math.max(most, count);
      }
      await load.stop();
      expect(load.failures).toEqual(new Map());
      expect(most).toBeGreaterThanOrEqual(workers);
      expect(most).toBeLessThanOrEqual(poolSize);
      await stop(service);
    } finally {
      await server.close();
    }
  });

  it('lose no acknowledged plant when all are killed', async () => {
    const server = await startPostgresServer();
    try {
      const token = await createToken(server.url);
      const service = await startOn(server.url, { WEB_CONCURRENCY: '3' });
      const load = startLoad(() => service.url, token);
      for (const worker of await childrenOf(service.command.process.pid!)) {
        await load.progress(200);
        process.kill(worker, 'SIGKILL');
      }
      await load.progress(500);
      await load.stop();
      // 0 stands for a connection that was cut. Every response was a success.
      expect([...load.failures.keys()].filter((status) => status !== 0)).toEqual([]);
      const rows = await server.query<{ id: string }>('SELECT id::text AS id FROM plants');
      const stored = new Set(rows.map(({ id }) => id));
      expect([...load.acknowledged].filter((id) => !stored.has(id))).toEqual([]);
      await stop(service);
    } finally {
      await server.close();
    }
  });
});
