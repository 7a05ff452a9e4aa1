import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop, stopUnderLoad, type BuiltService } from '../setup/service/built-service.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { metricAt } from '../setup/service/metrics.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';

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

  it('frozen: the service still stops gracefully', async () => {
    const other = await startOn(server.url);
    await fetchDocumented(`${other.url}/health/ready`);
    await server.freeze();
    await stop(other);
    await server.thaw();
    await recovered();
  });

  it('frozen with requests in flight: the service still responds to them, and stops gracefully', async () => {
    // Long enough for all requests to arrive before the first one has its response.
    const other = await startOn(server.url, { DATABASE_TIMEOUT_MS: '5000' });
    expect((await postPlant(other.url, token, --serial)).status).toBe(200);
    await server.freeze();
    const plants = Array.from({ length: 50 }, () => --serial);
    const responses = plants.map(async (id) => (await postPlant(other.url, token, id)).json());
    await until(async () => (await metricAt(other.url, 'plant_store_pending_requests')) === 50);
    await stopUnderLoad(other);
    // Not 50302: the service stops when they have their responses, and not when its time is over.
    for (const response of await Promise.all(responses))
      expect(response).toMatchObject({ error: 50300 });
    await server.thaw();
    await recovered();
  });

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
});
