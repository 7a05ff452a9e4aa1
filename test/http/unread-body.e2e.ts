import { once } from 'node:events';
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
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
import { holdServiceTimers } from '../setup/time/service-timers.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const SHORT = 100_000;
const LONG = 3_000_000;
/** Longer than these tests take. */
const LIMIT_MS = 600_000;
const JSON_TYPE = 'Content-Type: application/json';
const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';

/** The Connection header of a response is true, even if the response is sent before the body has arrived. */
describe('a response to a body that was not read', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({
      BODY_LIMIT: '1000',
      MAX_PENDING_REQUESTS: '1',
      // Longer than this file and the check after it take: a timer that is not cleared fails the check.
      REQUEST_TIMEOUT_MS: '600000',
    });
  });
  afterAll(() => service.close());

  const plain = (method: string, path: string, lines: string[]) =>
    [`${method} ${path} HTTP/1.1`, 'Host: x', ...lines, '', ''].join('\r\n');
  const post = (lines: string[]) => plantHead(service.token, lines);

  /** Takes the only place of MAX_PENDING_REQUESTS until its socket is closed. */
  async function occupy(): Promise<Socket> {
    const socket = await openConnection(service.port);
    socket.write(post([JSON_TYPE, 'Content-Length: 20']) + '{"id":');
    await until(async () => (await service.metric('plant_store_pending_requests')) === 1);
    return socket;
  }

  const CASES: [number, (lines: string[]) => string][] = [
    [40002, (lines) => post(['Content-Type: text/plain', ...lines])],
    [40003, (lines) => post([JSON_TYPE, ...lines])],
    [40100, (lines) => plain('POST', '/plants', lines)],
    [40101, (lines) => plantHead('wrong', lines)],
    [40400, (lines) => plain('POST', '/nowhere', lines)],
    [40500, (lines) => plain('PUT', '/plants', lines)],
    [40000, (lines) => plain('POST', '/plants', lines).replace('Host: x', 'Host: a b')],
  ];
  /** A client that sent an Expect may or may not send its body, so the connection always closes. */
  const EXPECT_CASE: [number, (lines: string[]) => string] = [
    41700,
    (lines) => post(['Expect: tea', ...lines]),
  ];

  it.each(CASES)(
    '%d: a body with a small length is read, and the connection stays open',
    async (code, head) => {
      const socket = await openConnection(service.port);
      await write(socket, head([`Content-Length: ${SHORT}`]) + 'x'.repeat(SHORT) + LIVE);
      const [refused, next] = await readResponses(socket, 2);
      expect(JSON.parse(refused!.body)).toMatchObject({ error: code });
      expect(refused!.headers['connection']).toBe('keep-alive');
      expect(next).toMatchObject({ status: 200 });
      socket.destroy();
    },
  );

  it('41700: after a body with a small length, the response says close and arrives', async () => {
    const [code, head] = EXPECT_CASE;
    await expectLastResponse(service, code, head([`Content-Length: ${SHORT}`]), SHORT);
  });

  it.each([...CASES, EXPECT_CASE])(
    '%d: after a body with a large length, the response says close and arrives',
    async (code, head) => {
      await expectLastResponse(service, code, head([`Content-Length: ${LONG}`]), LONG);
    },
  );

  it.each([...CASES, EXPECT_CASE])(
    '%d: after a body of unknown length, the response says close and arrives',
    async (code, head) => {
      const body = chunked(['x'.repeat(LONG)]) + LAST_CHUNK;
      await expectLastResponse(service, code, head([CHUNKED]), body);
    },
  );

  it.each([
    [40400, 'GET', '/nowhere'],
    [40500, 'GET', '/plants'],
    [40500, 'DELETE', '/plants'],
    [40100, 'POST', '/plants'],
    [40100, 'GET', '/metrics'],
  ])('%d: %s %s without a body leaves the connection open', async (code, method, path) => {
    const socket = await openConnection(service.port);
    await write(socket, plain(method, path, []) + LIVE);
    const [refused, next] = await readResponses(socket, 2);
    expect(JSON.parse(refused!.body)).toMatchObject({ error: code });
    expect(refused!.headers['connection']).toBe('keep-alive');
    expect(next).toMatchObject({ status: 200 });
    socket.destroy();
  });

  it('50301: after a body with a large length, the response says close and arrives', async () => {
    const other = await occupy();
    await expectLastResponse(service, 50301, post([JSON_TYPE, `Content-Length: ${LONG}`]), LONG);
    other.destroy();
  });

  it('43100: arrives although the client still sends its header', async () => {
    await expectLastResponse(service, 43100, `GET /${'x'.repeat(LONG)}`, 0);
  });

  it('40000: arrives although the client still sends garbage', async () => {
    await expectLastResponse(service, 40000, `garbage\r\n${'x'.repeat(LONG)}`, 0);
  });

  it('is the last one: a plant that follows is not stored', async () => {
    const body = '{"id":77,"name":"behind"}';
    const head = plantHead(service.token, [JSON_TYPE, `Content-Length: ${LONG}`]);
    const behind = plantRequest(service.token, body);
    await expectLastResponse(service, 40003, head, 'x'.repeat(LONG) + behind);
    expect(await service.storedPlants()).toEqual([]);
  });

  it('is the last one: data that follows is not parsed', async () => {
    let requests = 0;
    const count = () => requests++;
    const server = service.app.getHttpServer();
    server.on('request', count);
    const socket = await openConnection(service.port);
    socket.write(plain('POST', '/plants', [CHUNKED]) + chunked(['hello']));
    await readResponses(socket, 1);
    await write(socket, `0\r\n\r\n${LIVE.repeat(20_000)}`);
    socket.end();
    await readResponses(socket);
    server.off('request', count);
    expect(requests).toBe(1);
  });

  it('does not make the next request of a client with keep-alive fail', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 50; i++) {
      expect(await send(agent, 'x'.repeat(1_500_000))).toBe(400);
      expect(await send(agent, '{}')).toBe(400);
    }
    agent.destroy();
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
    // The rest of the body may fail to be sent once the response has arrived.
    const failed = new Promise<never>((_, reject) => {
      request.on('error', reject);
    });
    failed.catch(() => undefined);
    request.end(body);
    const receive = async () => {
      const [response] = (await once(request, 'response')) as [IncomingMessage];
      await readDocumented(response, 'POST /plants');
      return response.statusCode!;
    };
    return Promise.race([receive(), failed]);
  }
});

// Passport keeps one strategy for the whole process, so each test starts its service when the one before has closed.
describe('the last response of a connection, to a body that was not read', () => {
  const head = (token: string) => plantHead(token, [JSON_TYPE, `Content-Length: ${LONG}`]);

  it('42900: says close and arrives', async () => {
    const service = await startService({ AUTH_FAILURES_PER_MINUTE: '1' });
    await expectLastResponse(service, 40101, head(generateAccessToken()), LONG);
    await expectLastResponse(service, 42900, head(generateAccessToken()), LONG);
    await service.close();
  });

  it.each([
    [
      'a request with Connection: close',
      'GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
      200,
    ],
    ['a request of HTTP/1.0', 'GET /health/live HTTP/1.0\r\n\r\n', 200],
    ['a request for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 404],
    ['an unknown expectation', 'POST /plants HTTP/1.1\r\nHost: x\r\nExpect: tea\r\n\r\n', 417],
    ['garbage', 'garbage\r\n\r\n', 400],
  ])(
    'keeps its connection open for a limited time, whatever the client sends after %s',
    async (_kind, bytes, status) => {
      const service = await startService({ REQUEST_TIMEOUT_MS: String(LIMIT_MS) });
      const timers = holdServiceTimers(LIMIT_MS);
      const connected = once(service.app.getHttpServer(), 'connection') as Promise<[Socket]>;
      const socket = await openConnection(service.port, { allowHalfOpen: true });
      socket.on('error', () => undefined);
      try {
        const [accepted] = await connected;
        socket.write(bytes);
        expect(await readResponses(socket)).toMatchObject([{ status }]);
        for (let passed = 0; passed < LIMIT_MS; passed += LIMIT_MS / 4) {
          const { bytesRead } = accepted;
          socket.write('x');
          await until(() => accepted.bytesRead > bytesRead || accepted.destroyed);
          expect(accepted.destroyed).toBe(false);
          timers.advance(LIMIT_MS / 4);
        }
        expect(accepted.destroyed).toBe(true);
      } finally {
        timers.restore();
        socket.destroy();
        await service.close();
      }
    },
  );

  it('50302: says close and arrives', async () => {
    const service = await startService();
    service.app.get(LifecycleService).stop();
    await expectLastResponse(service, 50302, head(service.token), LONG);
    await service.close();
  });
});

/** Sends the whole request before it reads, as many clients do. */
async function expectLastResponse(
  service: TestService,
  code: number,
  head: string,
  body: number | string,
): Promise<void> {
  const socket = await openConnection(service.port);
  await write(socket, head + (typeof body === 'string' ? body : 'x'.repeat(body)));
  const responses = await readResponses(socket);
  expect(responses).toHaveLength(1);
  expect(JSON.parse(responses[0]!.body)).toMatchObject({ error: code });
  expect(responses[0]!.headers['connection']).toBe('close');
}

async function write(socket: Socket, bytes: string): Promise<void> {
  socket.pause();
  if (!socket.write(bytes)) await once(socket, 'drain');
}
