import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  CHUNKED,
  LAST_CHUNK,
  openConnection,
  plantHead,
  plantRequest,
  readResponses,
  sendRaw,
} from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

describe('a request that is not valid HTTP, or that Node would refuse by itself, gets an Error', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  const post = (...lines: string[]) =>
    ['POST /plants HTTP/1.1', 'Host: x', ...lines, '', ''].join('\r\n');
  const notHttp = /^The request is not valid HTTP\.$/;

  it.each<[string, number, RegExp, string]>([
    ['no HTTP', 40000, notHttp, 'hello\r\n\r\n'],
    ['HTTP/2 without negotiation', 40000, notHttp, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
    ['a broken header', 40000, notHttp, post('X')],
    // The log on a terminal shows the path.
    ['a control character in the target', 40000, notHttp, post().replace('/plants', '/\u001b[31m')],
    ['a character of C1 in the target', 40000, notHttp, post().replace('/plants', '/\u009b31m')],
    [
      'two values of Content-Length',
      40000,
      notHttp,
      post('Content-Length: 1', 'Content-Length: 2'),
    ],
    ['Content-Length and chunks', 40000, notHttp, post('Content-Length: 1', CHUNKED)],
    ['headers beyond 16 KiB', 43100, /too large/, post(`X: ${'x'.repeat(20_000)}`)],
    ['no Host', 40000, /Host is missing/, post().replace('Host: x\r\n', '')],
    ['a target without a path', 40000, /not a path/, post().replace('/plants', 'http://')],
    // For the first one, Node reports an error in addition to the request.
    ...['gzip', 'gzip, chunked'].map((coding): [string, number, RegExp, string] => [
      `the transfer coding ${coding}`,
      40000,
      /send it plain, or with Transfer-Encoding: chunked/,
      `${post(`Transfer-Encoding: ${coding}`)}${LAST_CHUNK}`,
    ]),
    ...['tea', '100-continue, tea', ''].map((expectation): [string, number, RegExp, string] => [
      `the expectation "${expectation}"`,
      41700,
      /Only Expect: 100-continue/,
      post(`Expect: ${expectation}`),
    ]),
  ])('%s: %d', async (_kind, error, message, bytes) => {
    const response = await sendRaw(service.port, bytes);
    expect(response.status).toBe(Math.floor(error / 100));
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-content-type-options': 'nosniff',
    });
    expect(JSON.parse(response.body)).toEqual({ error, message: expect.stringMatching(message) });
  });

  const head = (lines: string[]) =>
    plantHead(service.token, ['Content-Type: application/json', ...lines]);

  it('a token after five hundred header fields, of nearly 16 KiB, is read', async () => {
    const others = Array.from({ length: 500 }, (_, i) => `X${i}: ${'x'.repeat(22)}`);
    const bytes = head([]).replace('Authorization:', [...others, '$&'].join('\r\n'));
    const response = await sendRaw(service.port, bytes);
    expect(JSON.parse(response.body)).toMatchObject({ error: 40001 });
  });

  it('a chunk extension that is too large is 40000, because it is no header field', async () => {
    const chunk = `1;${'x'.repeat(20_000)}\r\na\r\n`;
    const response = await sendRaw(service.port, head([CHUNKED]) + chunk);
    expect(JSON.parse(response.body)).toMatchObject({ error: 40000 });
  });

  it('two Authorization header fields are 40101, even if the first one is valid', async () => {
    const lines = [`Authorization: Bearer ${service.token}`, 'Content-Length: 0'];
    const response = await sendRaw(service.port, head(lines));
    expect(JSON.parse(response.body)).toMatchObject({ error: 40101 });
  });

  it.each(['100-continue', 'tea'])(
    'HTTP/1.0 needs no Host, and its Expect: %s is ignored',
    async (expectation) => {
      const plant = plantRequest(service.token, '{"id":6,"name":"a"}', [`Expect: ${expectation}`]);
      const request = plant.replace('HTTP/1.1', 'HTTP/1.0').replace('Host: x\r\n', '');
      // Its body is still to come when the service reads it, so that it could ask for it.
      const socket = await openConnection(service.port);
      const begun = once(service.app.getHttpServer(), 'request');
      socket.write(request.slice(0, -1));
      await begun;
      socket.write(request.slice(-1));
      expect(await readResponses(socket)).toMatchObject([{ status: 200 }]);
    },
  );

  it('16 pipelined requests are handled in order, and a connection with one more is closed', async () => {
    const live = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
    const unknown = live.replace('/health/live', '/unknown');
    const socket = await openConnection(service.port);
    socket.write((live + unknown).repeat(8));
    const responses = await readResponses(socket, 16);
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill([200, 404]).flat());
    socket.write(live.repeat(17));
    expect((await readResponses(socket)).length).toBeLessThan(17);
    expect((await service.request('/health/live')).status).toBe(200);
  });

  it('a request whose chunks are broken does not replace the responses to the requests before it', async () => {
    const plant = plantRequest(service.token, '{"id":11,"name":"a"}');
    for (let before = 0; before <= 2; before++) {
      const socket = await openConnection(service.port);
      socket.write(`${plant.repeat(before)}${head([CHUNKED])}zz\r\n`);
      const responses = await readResponses(socket);
      expect(responses.map(({ status }) => status)).toEqual([
        ...Array<number>(before).fill(200),
        400,
      ]);
      expect(responses.at(-1)!.headers).toMatchObject({ connection: 'close' });
      expect(JSON.parse(responses.at(-1)!.body)).toMatchObject({ error: 40000 });
    }
  });

  it('garbage after a request does not replace its response', async () => {
    const socket = await openConnection(service.port);
    socket.write(`${plantRequest(service.token, '{"id":13,"name":"a"}')}garbage\r\n\r\n`);
    expect(await readResponses(socket)).toMatchObject([
      { status: 200, headers: { connection: 'close' } },
    ]);
  });

  it('a tunnel is refused by closing the connection', async () => {
    const socket = await openConnection(service.port);
    socket.write('CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n');
    expect(await readResponses(socket)).toEqual([]);
  });
});

describe('a client that is too slow', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ REQUEST_TIMEOUT_MS: '300' });
  });
  afterAll(() => service.close());

  it.each([
    ['whose headers never end', () => 'POST /plants HTTP/1.1\r\nHost: x\r\n'],
    [
      'whose body never ends',
      () =>
        plantHead(service.token, ['Content-Type: application/json', 'Content-Length: 50']) +
        '{"id":',
    ],
  ])('gets 40800 for a request %s', async (_kind, bytes) => {
    const response = await sendRaw(service.port, bytes());
    expect(response).toMatchObject({
      status: 408,
      headers: { connection: 'close', 'x-request-id': expect.any(String) },
    });
    expect(JSON.parse(response.body)).toEqual({ error: 40800, message: expect.any(String) });
  });

  it('gets 40800 also for a body that comes byte by byte, and never stalls', async () => {
    const socket = await openConnection(service.port);
    socket.on('error', () => undefined);
    socket.write(
      plantHead(service.token, ['Content-Type: application/json', 'Content-Length: 500']),
    );
    // The whole body would take much longer than REQUEST_TIMEOUT_MS, and then be 40004.
    const trickle = setInterval(() => socket.write(' '), 20);
    const [response] = await readResponses(socket, 1).finally(() => clearInterval(trickle));
    socket.destroy();
    expect(JSON.parse(response!.body)).toMatchObject({ error: 40800 });
  });
});

describe('a client that does not read its responses', () => {
  it('loses its connection', async () => {
    const service = await startService();
    const server = service.app.getHttpServer();
    server.timeout = 300;
    const gone = new Promise((resolve) =>
      server.once('connection', (it: Socket) => it.once('close', resolve)),
    );
    const socket = await openConnection(service.port);
    socket.on('error', () => undefined);
    socket.pause();
    socket.write('GET /docs/swagger-ui-bundle.js HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(4));
    await gone;
    socket.destroy();
    await service.close();
  });
});
