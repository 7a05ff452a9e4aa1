import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { Socket } from 'node:net';
import { end, urlOf } from '../setup/service/built-service.js';
import { NODE, ROOT, runProgram, type Command } from '../setup/process/command.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { openConnection, plantHead, readResponses, sendRaw } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const WARNING =
  /The limit of open files is (\d+), but with these settings a process may need (\d+)/;

describe('a service with few file descriptors', () => {
  /** Gives the schema and the token, and cuts the connections between database and service. */
  let beside: TestService;

  beforeAll(async () => {
    beside = await startService();
  });
  afterAll(() => beside.close());

  /** @param limit of open files, which the service cannot raise */
  const runWith = (limit: number, env: Record<string, string> = {}) =>
    runProgram(
      'sh',
      ['-c', `ulimit -n ${limit} && exec "$0" "$@"`, ...NODE, join(ROOT, 'dist/main.js')],
      { PORT: '0', DATABASE_URL: beside.proxy.url, ...METRICS_SETTING, ...env },
    );

  it('says at the start that they may not be enough for a worker with its part of the connections', async () => {
    const service = runWith(500, {
      MAX_CONNECTIONS: '8000',
      DATABASE_POOL_SIZE: '20',
      WEB_CONCURRENCY: '2',
    });
    expect((await service.waitFor(WARNING)).slice(1)).toEqual(['500', '4110']);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(0);
  });

  describe('that are all in use', () => {
    let service: Command;
    let port: number;
    /** Opened before the descriptors were used up. */
    let client: Socket;
    const others: Socket[] = [];
    let serial = 0;

    /** Connects clients until the service has no descriptor for one. */
    const useAllUp = async () => {
      for (;;) {
        const socket = await openConnection(port);
        socket.on('error', () => undefined);
        others.push(socket);
        socket.write('GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n');
        const responses = readResponses(socket, 1, 'GET /health/live').catch(() => []);
        if ((await responses).length === 0) return;
      }
    };
    const request = async (head: string, body = '') => {
      client.write(head + body);
      const [response] = await readResponses(client, 1, /^GET \S+/.exec(head)?.[0]);
      return response!;
    };
    const post = () => {
      const body = `{"id":${++serial},"name":"a"}`;
      const lines = ['Content-Type: application/json', `Content-Length: ${body.length}`];
      return request(plantHead(beside.token, lines), body);
    };

    beforeAll(async () => {
      service = runWith(90);
      port = Number(new URL(await urlOf(service)).port);
      client = await openConnection(port);
      expect(await post()).toMatchObject({ status: 200 });
      beside.proxy.cut();
      await useAllUp();
      beside.proxy.restore();
    });
    afterAll(async () => {
      client.destroy();
      await end(service);
    });

    it('refuses plants with 503 and Retry-After, because it cannot connect to the database', async () => {
      for (let i = 0; i < 3; i++) {
        const { status, headers, body } = await post();
        expect({ status, body }).toMatchObject({
          status: 503,
          body: expect.stringContaining('50300'),
        });
        expect(headers['retry-after']).toBe('1');
      }
    });

    it('refuses files of the page with 503 and Retry-After', async () => {
      const { status, headers, body } = await request('GET /docs HTTP/1.1\r\nHost: x\r\n\r\n');
      expect({ status, body }).toMatchObject({
        status: 503,
        body: expect.stringContaining('50301'),
      });
      expect(headers['retry-after']).toBe('1');
    });

    it('stores plants again when clients have left', async () => {
      for (const socket of others) {
        socket.destroy();
        if (!socket.closed) await once(socket, 'close');
      }
      await until(async () => (await post()).status === 200);
      expect(await sendRaw(port, 'GET /docs HTTP/1.1\r\nHost: x\r\n\r\n')).toMatchObject({
        status: 200,
      });
    });
  });
});
