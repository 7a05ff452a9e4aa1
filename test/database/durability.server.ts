import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop, type BuiltService } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import { setUpRole, startPgBouncer } from './pgbouncer.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { until } from '../setup/time/until.js';

/** No standby has this name, so a commit waits until somebody cancels the wait. */
const MISSING_STANDBY = 'ghost';

const LIMITS = { DATABASE_TIMEOUT_MS: '5000' };

describe.each([
  ['directly', (server: PostgresServer) => ({ ...server, close: () => Promise.resolve() })],
  ['behind PgBouncer', startPgBouncer],
])('a service whose database waits for a standby that is away, %s', (_where, open) => {
  let server: PostgresServer;
  let entry: Awaited<ReturnType<typeof open>>;
  let service: BuiltService;
  let token: string;

  beforeAll(async () => {
    server = await startPostgresServer();
    entry = await open(server);
    token = await createToken(server.url);
    if (entry.url !== server.url) await setUpRole(server, entry.url, LIMITS);
    service = await startOn(entry.url, LIMITS);
  });
  beforeEach(async () => {
    await waitForStandby('');
    await server.query('TRUNCATE plants');
    expect(await post(1)).toEqual({ status: 200 });
    await waitForStandby(MISSING_STANDBY);
  });
  afterAll(async () => {
    await stop(service);
    await entry.close();
    await server.close();
  });

  async function waitForStandby(name: string): Promise<void> {
    await server.query(`ALTER SYSTEM SET synchronous_standby_names = '${name}'`);
    await server.query('SELECT pg_reload_conf()');
    await until(async () => {
      const [row] = await server.query<{ name: string }>(
        "SELECT current_setting('synchronous_standby_names') AS name",
      );
      return row!.name === name;
    });
  }

  async function post(id: number): Promise<{ status: number; error?: number }> {
    const response = await postPlant(service.url, token, id);
    const { error } = (await response.json()) as { error?: number };
    return { status: response.status, ...(error !== undefined && { error }) };
  }

  const UNAVAILABLE = { status: 503, error: 50300 };
  const storedIds = async () =>
    (await server.query<{ id: string }>('SELECT id::text AS id FROM plants ORDER BY 1')).map(
      ({ id }) => id,
    );

  /** Cancels the commits that wait for the standby, as an administrator could do. */
  const cancelWaits = () =>
    server.query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
       WHERE wait_event = 'SyncRep' AND query ~ 'INTO plants|COMMIT'`,
    );

  it('does not acknowledge a plant whose wait was canceled, nor its repeats', async () => {
    for (let attempt = 0; attempt < 3; attempt++) {
      let isOver = false;
      const response = post(2).finally(() => (isOver = true));
      // Behind PgBouncer, the wait of another transaction, which records the use of the token, looks the same.
      await until(async () => {
        await cancelWaits();
        return isOver;
      });
      expect(await response).toEqual(UNAVAILABLE);
    }
    expect(await storedIds()).toEqual(['1', '2']);
    await waitForStandby('');
    expect(await post(2)).toEqual({ status: 200 });
  });

  it('does not acknowledge a repeat of a plant that a restart of the server made visible', async () => {
    const response = post(3);
    await until(
      async () =>
        (await server.query("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'")).length >
        0,
    );
    await server.kill();
    await server.start();
    await response;
    expect(await storedIds()).toEqual(['1', '3']);
    expect(await post(3)).toEqual(UNAVAILABLE);
    await waitForStandby('');
    // PgBouncer connects to a server that has died again after a second.
    await until(async () => (await post(3)).status === 200);
  });
});
