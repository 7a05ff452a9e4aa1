import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from '@jest/globals';
import { startSite } from '../http/nginx.js';
import { PATIENT } from '../setup/database/patient.js';
import { startPostgresServer } from '../setup/database/postgres-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { startLoad, type Load } from '../setup/model/load.js';
import { ROOT, runProgram } from '../setup/process/command.js';
import { findFreePorts } from '../setup/process/ports.js';
import {
  startOn,
  stop,
  stopUnderLoad,
  urlOf,
  type BuiltService,
} from '../setup/service/built-service.js';
import { isReady } from '../setup/service/is-ready.js';
import { METRICS_SETTING, metricAt } from '../setup/service/metrics.js';
import { environmentOf, valuesOf } from '../setup/service/systemd-unit.js';
import { createToken } from '../setup/service/tokens.js';
import { settled } from '../setup/time/settled.js';
import { until } from '../setup/time/until.js';

const resources = useResources();

/** Runs `use` with a database and a token; then exactly the plants that the load got acknowledged must be stored. */
async function withDatabase(
  use: (databaseUrl: string, token: string) => Promise<Load>,
): Promise<void> {
  const server = await startPostgresServer();
  try {
    const load = await use(server.url, await createToken(server.url));
    const rows = await server.query('SELECT count(*)::int AS count FROM plants');
    expect(rows).toEqual([{ count: load.acknowledged.size }]);
  } finally {
    await server.close();
  }
}

describe('a rolling restart under load loses no request', () => {
  it('behind a load balancer that checks readiness', () =>
    withDatabase(async (databaseUrl, token) => {
      const start = () => startOn(databaseUrl, { SHUTDOWN_DELAY_MS: '3000' });
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
      for (const replica of replicas) await stop(replica);
      return load;
    }));

  it('behind the nginx site, started as by systemd, and neither do a hang and a kill', () =>
    withDatabase(async (databaseUrl, token) => {
      const dir = await temporaryFolder(resources);
      await writeFile(join(dir, 'database-url'), databaseUrl);
      const [http, https, ...instances] = (await findFreePorts(4)) as [number, number, ...number[]];
      const start = async (port: number): Promise<BuiltService> => {
        const environment = environmentOf({ '%i': String(port), '%S': dir, '%d': dir });
        const [program, ...args] = valuesOf('ExecStart')[0]!
          .replace('/opt/plant-store', ROOT)
          .split(' ') as [string, ...string[]];
        const command = runProgram(program, args, {
          ...environment,
          ...METRICS_SETTING,
          ...PATIENT,
        });
        return { command, url: await urlOf(command) };
      };
      const services = await Promise.all(instances.map(start));
      // Without TLS, for which the clients would need the certificate.
      await startSite(resources, dir, { http, https, instances }, (site) =>
        site.replace(' ssl;', ';').replaceAll(/^ *ssl_.*$/gm, ''),
      );
      const load = startLoad(resources, () => `http://127.0.0.1:${https}`, token);

      for (const [i, port] of instances.entries()) {
        await load.progress(500);
        expect(await metricAt(services[i]!.url, 'plant_store_batch_size_count')).toBeGreaterThan(0);
        await stopUnderLoad(services[i]!);
        await load.progress(500);
        services[i] = await start(port);
      }
      await load.progress(500);
      const [first, second] = services as [BuiltService, BuiltService];
      first.command.process.kill('SIGSTOP');
      await load.progress(500);
      first.command.process.kill('SIGCONT');
      await load.progress(500);
      first.command.process.kill('SIGKILL');
      await load.progress(500);
      await load.stop();
      expect(load.failures).toEqual(new Map());
      await stop(second);
      return load;
    }));
});
