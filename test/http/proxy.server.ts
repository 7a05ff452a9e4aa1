import { once } from 'node:events';
import { getServers } from 'node:dns';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { describe, expect, it } from '@jest/globals';
import { settings } from '../../src/config/settings.js';
import { startOn, stop, stopUnderLoad } from '../setup/service/built-service.js';
import { createToken } from '../setup/service/tokens.js';
import { expectDocumented } from '../setup/http/documented.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { startLoad } from '../setup/model/load.js';
import { startNginx } from './nginx.js';
import { openServer } from '../setup/http/open-server.js';
import { temporaryFolder, useResources } from '../setup/jest/resources.js';
import { findFreePorts } from '../setup/process/ports.js';
import { startPostgresServer } from '../setup/database/postgres-server.js';
import { openConnection, readUnchecked, type RawResponse } from '../setup/http/raw-http.js';

const resources = useResources();

interface Proxy {
  /** The folder of its files. */
  readonly dir: string;
  readonly url: string;
  readonly port: number;
}

/**
 * Starts nginx with the files of the Compose profile, with other addresses, until the end of the test.
 *
 * @param bodyLimit the setting of the service; by default, it is not set
 */
async function startProxy(
  replicas: readonly number[],
  edit = (config: string) => config,
  bodyLimit?: string,
): Promise<Proxy> {
  const dir = await temporaryFolder(resources);
  const [port] = (await findFreePorts(1)) as [number];
  const servers = replicas.map((replica) => `server 127.0.0.1:${replica} max_fails=0;`).join(' ');
  const file = await readFile('deploy/proxy/nginx.conf', 'utf8');
  const config = file
    .replace('server plant-store-replica:3000 resolve max_fails=0;', servers)
    .replace('listen 8080;', `listen 127.0.0.1:${port}; access_log off;`);
  const globals = `pid ${join(dir, 'pid')}; error_log ${join(dir, 'log')};\n`;
  await writeFile(join(dir, 'nginx.conf'), globals + edit(config));
  await copyFile('deploy/proxy/start', join(dir, 'start'));
  await startNginx(resources, ['/bin/sh', join(dir, 'start')], port, {
    TMPDIR: dir,
    ...(bodyLimit !== undefined && { BODY_LIMIT: bodyLimit }),
  });
  return { dir, url: `http://127.0.0.1:${port}`, port };
}

/** Opens a port at which no connection is accepted any more: its thread is busy, and its queue is full. */
async function openFullPort(): Promise<{ port: number; close(): Promise<void> }> {
  const thread = new Worker(
    `const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer();
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`,
    { eval: true },
  );
  const [port] = (await once(thread, 'message')) as [number];
  // Linux queues one more than the limit.
  const queue = await Promise.all([openConnection(port), openConnection(port)]);
  return {
    port,
    async close() {
      for (const socket of queue) socket.destroy();
      await thread.terminate();
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
    const { url } = await startProxy(ports);
    const load = startLoad(resources, () => url, token);
    for (const [i, port] of ports.entries()) {
      await load.progress(500);
      await stopUnderLoad(replicas[i]!);
      await load.progress(500);
      replicas[i] = await start(port);
    }
    await load.progress(500);
    await load.stop();
    expect(load.failures).toEqual(new Map());
    for (const replica of replicas) await stop(replica);
  } finally {
    await server.close();
  }
});

describe('the proxy of the Compose file', () => {
  /** Starts a proxy with this number of replicas, which are no Plant Stores. */
  async function startInFrontOf(
    count: number,
    replica: RequestListener,
    bodyLimit?: string,
  ): Promise<Proxy> {
    const ports: number[] = [];
    for (let i = 0; i < count; i++) {
      ports.push((await openServer(resources, createServer(replica))).port);
    }
    return startProxy(ports, undefined, bodyLimit);
  }

  it('tells the service the address of the client, whatever the client sends, and the host of the request', async () => {
    const { url } = await startInFrontOf(1, ({ headers }, response) => {
      response.end(JSON.stringify(headers));
    });
    const response = await fetchDocumented(`${url}/headers`, {
      headers: { 'x-forwarded-for': '192.0.2.1' },
    });
    expect(await response.json()).toMatchObject({
      'x-forwarded-for': '127.0.0.1',
      host: new URL(url).host,
    });
  });

  it.each([undefined, '', '100', '128kb', '1MB'])(
    'passes the largest body that the service accepts, and none that is larger, with BODY_LIMIT=%s',
    async (bodyLimit) => {
      const { url, port } = await startInFrontOf(
        1,
        (request, response) => {
          void text(request).then((body) => response.end(String(body.length)));
        },
        bodyLimit,
      );
      const size = settings.shape.BODY_LIMIT.parse(bodyLimit || undefined);
      const response = await fetchDocumented(`${url}/size`, {
        method: 'POST',
        body: 'a'.repeat(size),
      });
      expect(await response.text()).toBe(String(size));
      const { body } = await responseTo(port, `Content-Length: ${size + 1}`);
      expect(JSON.parse(body)).toMatchObject({ error: 40003 });
    },
  );

  it('asks the first name server of its container, which is not the same in Docker and podman', async () => {
    const { dir } = await startInFrontOf(1, (_, response) => response.end());
    const [server] = getServers() as [string];
    const address = isIPv6(server) ? `[${server}]` : server;
    expect(await readFile(join(dir, 'plant-store-proxy.conf'), 'utf8')).toContain(
      `\n  resolver ${address} valid=5s;\n`,
    );
  });

  it('sends a POST to the next replica when the connection to the first one ends', async () => {
    let attempts = 0;
    const { url } = await startInFrontOf(2, (request, response) => {
      if (++attempts === 1) request.socket.destroy();
      else response.end('the other');
    });
    const response = await fetchDocumented(`${url}/attempts`, { method: 'POST' });
    expect(await response.text()).toBe('the other');
  });

  it('sends a POST to the next replica when the first one does not accept its connection', async () => {
    const full = await openFullPort();
    try {
      const other = await openServer(
        resources,
        createServer((_, response) => response.end('the other')),
      );
      const { url } = await startProxy([full.port, other.port], (config) =>
        config.replace(/proxy_connect_timeout \S+;/, 'proxy_connect_timeout 1ms;'),
      );
      // Two, because the proxy takes turns.
      for (let i = 0; i < 2; i++) {
        const response = await fetchDocumented(`${url}/attempts`, { method: 'POST' });
        expect(await response.text()).toBe('the other');
      }
    } finally {
      await full.close();
    }
  });

  /** Sends the head of a request for which the proxy has a response of its own. */
  async function responseTo(port: number, ...lines: string[]): Promise<RawResponse> {
    const socket = await openConnection(port);
    socket.write(['POST /plants HTTP/1.1', 'Host: a', ...lines, '', ''].join('\r\n'));
    const [response] = await readUnchecked(socket, 1);
    socket.destroy();
    const header = (name: string) => response!.headers[name.toLowerCase()] ?? null;
    await expectDocumented({ ...response!, header, request: 'POST /plants' });
    return response!;
  }

  /** Not 50302: nothing says that the service is shutting down. */
  const UNAVAILABLE = { error: 50301 };

  it('responds with an error of the service and Retry-After if no replica can be reached', async () => {
    const { port } = await startProxy(await findFreePorts(1));
    const { headers, body } = await responseTo(port);
    expect(JSON.parse(body)).toMatchObject(UNAVAILABLE);
    expect(headers).toMatchObject({ 'retry-after': '1', server: 'nginx' });
  });

  it('responds with the same error if a replica is silent for too long', async () => {
    const replica = await openServer(
      resources,
      createServer(() => undefined),
    );
    const { port } = await startProxy([replica.port], (config) =>
      config.replace(/proxy_read_timeout \S+;/, 'proxy_read_timeout 1ms;'),
    );
    expect(JSON.parse((await responseTo(port)).body)).toMatchObject(UNAVAILABLE);
  });
});
