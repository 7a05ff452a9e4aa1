import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, it } from '@jest/globals';
import { createToken, startOn, stop, stopUnderLoad } from '../setup/built-service.js';
import { fetchDocumented, noResponse } from '../setup/fetch-documented.js';
import { startLoad, stopLoads } from '../setup/load.js';
import { findFreePorts } from '../setup/ports.js';
import { startPostgresServer } from '../setup/postgres-server.js';
import { until } from '../setup/until.js';

afterEach(stopLoads);

/** Starts nginx with the file of the Compose profile, with other addresses. */
async function startProxy(replicas: readonly number[]): Promise<{
  url: string;
  close(): Promise<void>;
}> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-proxy-'));
  const [port] = (await findFreePorts(1)) as [number];
  const servers = replicas.map((replica) => `server 127.0.0.1:${replica} max_fails=0;`).join(' ');
  const file = await readFile('deploy/proxy/nginx.conf', 'utf8');
  const config = file
    .replace('server plant-store-replica:3000 resolve max_fails=0;', servers)
    .replace('listen 8080;', `listen 127.0.0.1:${port}; access_log off;`);
  await writeFile(join(dir, 'nginx.conf'), config);
  const globals = `daemon off; pid ${join(dir, 'pid')}; error_log ${join(dir, 'log')};`;
  const nginx = spawn('/usr/sbin/nginx', ['-c', join(dir, 'nginx.conf'), '-g', globals], {
    stdio: 'inherit',
  });
  const exited = once(nginx, 'close');
  const url = `http://127.0.0.1:${port}`;
  await until(async () => {
    const response = await fetchDocumented(`${url}/health/live`).catch(noResponse);
    return response?.ok ?? false;
  });
  return {
    url,
    async close() {
      nginx.kill('SIGTERM');
      await exited;
      await rm(dir, { recursive: true });
    },
  };
}

it('behind the proxy of the Compose file, a rolling restart without a delay loses no request', async () => {
  const server = await startPostgresServer();
  try {
    const token = await createToken(server.url);
    const ports = await findFreePorts(3);
    const start = (port: number) => startOn(server.url, { PORT: String(port) });
    const replicas = await Promise.all(ports.map(start));
    const proxy = await startProxy(ports);
    const load = startLoad(() => proxy.url, token);
    for (const [i, port] of ports.entries()) {
      await load.progress(500);
      await stopUnderLoad(replicas[i]!);
      await load.progress(500);
      replicas[i] = await start(port);
    }
    await load.progress(500);
    await load.stop();
    expect(load.failures).toEqual(new Map());
    await proxy.close();
    for (const replica of replicas) await stop(replica);
  } finally {
    await server.close();
  }
});
