import { describe, expect, it } from '@jest/globals';
import { startOn, stop, stopUnderLoad } from '../setup/service/built-service.js';
import { startLoad } from '../setup/model/load.js';
import { useResources } from '../setup/jest/resources.js';
import { childrenOf } from '../setup/process/processes.js';
import { startPostgresServer } from '../setup/database/postgres-server.js';
import { isReady } from '../setup/service/is-ready.js';
import { createToken } from '../setup/service/tokens.js';
import { until } from '../setup/time/until.js';
import { settled } from '../setup/time/settled.js';

const resources = useResources();

describe('a rolling restart of two replicas under load', () => {
  it.each(['1', '2'])('loses no request, with %s process(es) each', async (workers) => {
    const server = await startPostgresServer();
    try {
      const token = await createToken(server.url);
      const start = () =>
        startOn(server.url, { SHUTDOWN_DELAY_MS: '3000', WEB_CONCURRENCY: workers });
      let replicas = await Promise.all([start(), start()]);
      // A load balancer: it checks readiness all the time, and sends requests only to replicas that are ready.
      let ready = replicas.map(({ url }) => url);
      let isChecking = true;
      const checking = (async () => {
        while (isChecking) {
          const checks = await Promise.all(replicas.map(({ url }) => isReady(url)));
          ready = replicas.map(({ url }) => url).filter((_, i) => checks[i]);
          await settled();
        }
      })();
      let turn = 0;
      const load = startLoad(resources, () => ready[turn++ % ready.length]!, token);
      // Each of them once.
      for (let round = 0; round < 2; round++) {
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
      const load = startLoad(resources, () => service.url, token, 64);
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
      const load = startLoad(resources, () => service.url, token);
      const workers = await childrenOf(service.command.process.pid!);
      expect(workers).toHaveLength(3);
      for (const worker of workers) {
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
