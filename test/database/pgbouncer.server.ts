import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { isReady } from '../setup/service/is-ready.js';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import { runInProcess } from '../setup/service/cli.js';
import { startLoad } from '../setup/model/load.js';
import { useResources } from '../setup/jest/resources.js';
import { PATIENT } from '../setup/database/patient.js';
import { mendSettings, renewSessions, setUpRole, startPgBouncer } from './pgbouncer.js';
import { startPostgresServer, type PostgresServer } from '../setup/database/postgres-server.js';
import { until } from '../setup/time/until.js';

const resources = useResources();

describe('behind PgBouncer in transaction mode', () => {
  let server: PostgresServer;
  let bouncer: Awaited<ReturnType<typeof startPgBouncer>>;

  beforeEach(async () => {
    server = await startPostgresServer();
    bouncer = await startPgBouncer(server);
  });
  afterEach(async () => {
    await bouncer.close();
    await server.close();
  });

  const env = () => ({ DATABASE_URL: bouncer.url, ...PATIENT });
  const exportPlants = () => runInProcess(['plants', 'export'], env());

  const setUp = () => setUpRole(server, bouncer.url, PATIENT);

  it('wrong settings are refused, and the message has the statements that mend them', async () => {
    await server.query(`ALTER DATABASE plants_test SET synchronous_commit = off`);
    const { exitCode, stderr } = await exportPlants();
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /cannot be used: The role of the service needs other settings, because its sessions belong to a pooler: (?=.*synchronous_commit)(?=.*statement_timeout)/,
    );
    await mendSettings(server, stderr);
    expect(await exportPlants()).toMatchObject({ exitCode: 0 });
  });

  it('a service is not ready while the role has other settings', async () => {
    await setUp();
    const service = await startOn(bouncer.url);
    await server.query(`ALTER ROLE plants IN DATABASE plants_test SET array_nulls = off`);
    await renewSessions(server);
    await until(async () => !(await isReady(service.url)));
    const [entry] = await service.command.waitFor(/^\{.+"cause":".+array_nulls.+\}$/m);
    await mendSettings(server, (JSON.parse(entry) as { cause: string }).cause);
    await until(() => isReady(service.url));
    await stop(service);
  });

  it('migrations, tokens, plants, their export and their load work', async () => {
    await setUp();
    const services = await Promise.all([startOn(bouncer.url), startOn(bouncer.url)]);
    const token = await createToken(server.url);
    let turn = 0;
    const load = startLoad(resources, () => services[turn++ % services.length]!.url, token);
    await load.progress(500);
    await load.stop();
    expect(load.failures).toEqual(new Map());
    const exported = await exportPlants();
    expect(exported).toMatchObject({ exitCode: 0 });
    expect(exported.stdout.split('\n')).toHaveLength(1 + load.acknowledged.size + 1);
    const folder = await mkdtemp(join(tmpdir(), 'plant-store-bouncer-'));
    await writeFile(join(folder, 'plants.csv'), exported.stdout);
    const loaded = await runInProcess(['plants', 'load', join(folder, 'plants.csv')], env());
    expect(loaded.stderr).toContain('0 stored, ');
    expect(loaded.exitCode).toBe(0);
    await rm(folder, { recursive: true });
    for (const service of services) await stop(service);
  });

  it('the server ends a statement that waits for a lock', async () => {
    await setUp();
    const locker = new pg.Client({ connectionString: server.url });
    const service = await startOn(bouncer.url);
    const token = await createToken(server.url);
    try {
      await locker.connect();
      await locker.query('BEGIN; LOCK TABLE plants');
      expect((await postPlant(service.url, token, 1)).status).toBe(503);
      const waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
      await until(async () => (await server.query(waiting)).length === 0);
      await locker.query('ROLLBACK');
      expect((await postPlant(service.url, token, 1)).status).toBe(200);
      await stop(service);
    } finally {
      await locker.end();
    }
  });
});
