import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop, stopUnderLoad, type BuiltService } from '../setup/service/built-service.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { startLoad } from '../setup/model/load.js';
import { useResources } from '../setup/jest/resources.js';
import { metricAt } from '../setup/service/metrics.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';

const resources = useResources();

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
  const post = () => postPlant(service.url, token, --serial);
  const recovered = async () => {
    await until(async () => (await post()).status === 200);
  };

  async function expectNothingLost(acknowledged: ReadonlySet<string>) {
    const rows = await server.query<{ id: string }>('SELECT id::text AS id FROM plants');
    const stored = new Set(rows.map(({ id }) => id));
    expect([...acknowledged].filter((id) => !stored.has(id))).toEqual([]);
  }

  it('killed under load: 503, recovery by itself, and no acknowledged plant is missing', async () => {
    const load = startLoad(resources, () => service.url, token);
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
    const load = startLoad(resources, () => service.url, token);
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
    expect((await postPlant(other.url, token, --serial)).status).toBe(200);
    await server.freeze();
    const responses = Array.from({ length: 50 }, () => postPlant(other.url, token, --serial));
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
