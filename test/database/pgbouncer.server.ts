import { describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { postPlant } from '../setup/http/post-plant.js';
import { startOn, stop } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import { runInProcess } from '../setup/service/cli.js';
import { startLoad } from '../setup/model/load.js';
import { useResources } from '../setup/jest/resources.js';
import { startPgBouncer } from './pgbouncer.js';
import { startPostgresServer } from '../setup/database/postgres-server.js';
import { until } from '../setup/time/until.js';

const resources = useResources();

describe('behind PgBouncer in transaction mode', () => {
  it('migrations, tokens, plants and their export work', async () => {
    const server = await startPostgresServer();
    const bouncer = await startPgBouncer(server);
    try {
      const services = await Promise.all([startOn(bouncer.url), startOn(bouncer.url)]);
      const token = await createToken(bouncer.url);
      let turn = 0;
      const load = startLoad(resources, () => services[turn++ % services.length]!.url, token);
      await load.progress(500);
      await load.stop();
      expect(load.failures).toEqual(new Map());
      const exported = await runInProcess(['plants', 'export'], { DATABASE_URL: bouncer.url });
      expect(exported).toMatchObject({ exitCode: 0 });
      expect(exported.stdout.split('\n')).toHaveLength(1 + load.acknowledged.size + 1);
      for (const service of services) await stop(service);
    } finally {
      await bouncer.close();
      await server.close();
    }
  });

  it('the server learns the time limit of a statement through it', async () => {
    const server = await startPostgresServer();
    const bouncer = await startPgBouncer(server);
    const locker = new pg.Client({ connectionString: server.url });
    try {
      const service = await startOn(bouncer.url);
      const token = await createToken(bouncer.url);
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
      await bouncer.close();
      await server.close();
    }
  });
});
