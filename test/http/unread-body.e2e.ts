import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LifecycleService } from '../../src/http/lifecycle.service.js';
import { readDocumented } from '../setup/http/fetch-documented.js';
import {
  CHUNKED,
  chunked,
  LAST_CHUNK,
  openConnection,
  plantHead,
  plantRequest,
  readResponses,
} from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const LONG = 3_000_000;
/** More than the buffers of a connection hold. */
const HUGE = 15_000_000;
const JSON_TYPE = 'Content-Type: application/json';
const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';

const plain = (method: string, path: string, lines: string[]) =>
  [`${method} ${path} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');

/** A response that does not need the body is sent at once; the rest of the body is read off. */
describe('a response to a body that was not read', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ BODY_LIMIT: '1000', MAX_PENDING_REQUESTS: '1' });
  });
  afterAll(() => service.close());

  const post = (lines: string[]) => plantHead(service.token, lines);

  // Refused by a middleware, the router, the guard and the parameter of the handler.
  const CASES: [number, (lines: string[]) => string][] = [
    [41700, (lines) => post(['Expect: tea', ...lines])],
    [40400, (lines) => plain('POST', '/nowhere', lines)],
    [40101, (lines) => plantHead('wrong', lines)],
    [40003, (lines) => post([JSON_TYPE, ...lines])],
  ];

  async function expectConnectionToStay(socket: Socket, code: number): Promise<void> {
    const [refused, next] = await readResponses(socket, 2);
    expect(JSON.parse(refused!.body)).toMatchObject({ error: code });
    expect(refused!.headers['connection']).toBe('keep-alive');
    expect(next).toMatchObject({ status: 200 });
    socket.destroy();
  }

  it.each(CASES)(
    '%d: arrives before the body, and the connection stays open',
    async (code, head) => {
      const socket = await openConnection(service.port);
      socket.write(head([`Content-Length: ${LONG}`]));
      const [refused] = await readResponses(socket, 1);
      expect(JSON.parse(refused!.body)).toMatchObject({ error: code });
      await write(socket, 'x'.repeat(LONG) + LIVE);
      expect(await readResponses(socket, 1)).toMatchObject([{ status: 200 }]);
      socket.destroy();
    },
  );

  it.each(CASES)('%d: arrives after a body of unknown length, too', async (code, head) => {
    const socket = await openConnection(service.port);
    await write(socket, head([CHUNKED]) + chunked(['x'.repeat(LONG)]) + LAST_CHUNK + LIVE);
    await expectConnectionToStay(socket, code);
  });

  it('50301: arrives, and the connection stays open', async () => {
    const other = await openConnection(service.port);
    other.write(post([JSON_TYPE, 'Content-Length: 20']) + '{"id":');
    await until(async () => (await service.metric('plant_store_pending_requests')) === 1);
    const socket = await openConnection(service.port);
    await write(socket, post([JSON_TYPE, `Content-Length: ${LONG}`]) + 'x'.repeat(LONG) + LIVE);
    await expectConnectionToStay(socket, 50301);
    other.destroy();
  });

  it('does not make the next request of a client with keep-alive fail', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 10; i++) {
      expect(await send(agent, 'x'.repeat(1_500_000))).toBe(400);
      expect(await send(agent, '{}')).toBe(400);
    }
    agent.destroy();
  });

  it('leaves a request behind it to be handled', async () => {
    const socket = await openConnection(service.port);
    const refused = post([JSON_TYPE, `Content-Length: ${LONG}`]) + 'x'.repeat(LONG);
    await write(socket, refused + plantRequest(service.token, '{"id":77,"name":"behind"}'));
    const responses = await readResponses(socket, 2);
    expect(responses.map(({ status }) => status)).toEqual([400, 200]);
    expect(await service.storedPlants()).toContainEqual({ id: '77', name: 'behind' });
    socket.destroy();
  });

  it('is the one of every pipelined request beyond the places, in their order', async () => {
    // The token is in the cache now: the guards of the requests below run at once.
    await service.post('{"id":1,"name":"a"}');
    const socket = await openConnection(service.port);
    const plants = [1, 2, 3].map((id) => plantRequest(service.token, `{"id":${id},"name":"a"}`));
    socket.write(plants.join(''));
    const responses = await readResponses(socket, plants.length);
    expect(responses.map(({ status }) => status)).toEqual([200, 503, 503]);
    socket.destroy();
  });

  /** Sends one request after the other through one agent, as clients with keep-alive do. */
  async function send(agent: Agent, body: string): Promise<number> {
    const request = httpRequest(`${service.url}/plants`, {
      agent,
      method: 'POST',
      headers: {
        authorization: `Bearer ${service.token}`,
        'content-type': 'application/json',
        'content-length': body.length,
      },
    });
    request.end(body);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await readDocumented(response, 'POST /plants');
    return response.statusCode!;
  }
});

/** A client that still sends when its connection is closed may lose the response. */
describe('the last response of a connection', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  async function expectLastResponse(head: string, code: number): Promise<void> {
    const begun = once(service.app.getHttpServer(), 'request');
    const socket = await openConnection(service.port);
    socket.pause();
    socket.write(head);
    await begun;
    // The client sends its body only now, and reads when all of it is sent.
    await write(socket, 'x'.repeat(HUGE));
    const responses = await readResponses(socket);
    expect(responses).toMatchObject([{ headers: { connection: 'close' } }]);
    expect(JSON.parse(responses[0]!.body)).toMatchObject({ error: code });
  }

  it('reaches a client that asked for it to be the last one', async () => {
    const lines = [JSON_TYPE, `Content-Length: ${HUGE}`, 'Connection: close'];
    await expectLastResponse(plantHead('wrong', lines), 40101);
  });

  it('reaches a client with HTTP/1.0', async () => {
    const head = plantHead(service.token, [JSON_TYPE, `Content-Length: ${HUGE}`]);
    await expectLastResponse(head.replace('HTTP/1.1', 'HTTP/1.0'), 40003);
  });

  it('reaches a client of a service that stops', async () => {
    service.app.get(LifecycleService).stop();
    const head = plantHead(service.token, [JSON_TYPE, `Content-Length: ${HUGE}`]);
    await expectLastResponse(head, 50302);
    await service.restart();
  });

  it('is sent at once, also to a client that waits for it before it sends its body', async () => {
    const socket = await openConnection(service.port);
    const lines = [JSON_TYPE, 'Content-Length: 5', 'Expect: 100-continue', 'Connection: close'];
    socket.write(plantHead('wrong', lines));
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 401 }]);
    socket.destroy();
  });
});

async function write(socket: Socket, bytes: string): Promise<void> {
  socket.pause();
  if (!socket.write(bytes)) await once(socket, 'drain');
}
