import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  CHUNKED,
  chunked,
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

  it.each([
    ['no HTTP', 'hello\r\n\r\n', 400, 40000],
    ['HTTP/2 without negotiation', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 400, 40000],
    ['a broken header', 'POST /plants HTTP/1.1\r\nHost x\r\n\r\n', 400, 40000],
    // The log on a terminal shows the path.
    [
      'a control character in the target',
      'GET /\u001b[31m HTTP/1.1\r\nHost: x\r\n\r\n',
      400,
      40000,
    ],
    ['a character of C1 in the target', 'GET /\u009b31m HTTP/1.1\r\nHost: x\r\n\r\n', 400, 40000],
    ['no Host', 'POST /plants HTTP/1.1\r\n\r\n', 400, 40000],
    [
      'two values of Content-Length',
      'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
      400,
      40000,
    ],
    [
      'Content-Length and Transfer-Encoding',
      'POST /plants HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n',
      400,
      40000,
    ],
    [
      'headers beyond 16 KiB',
      `POST /plants HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`,
      431,
      43100,
    ],
    // For the second one, Node reports an error in addition to the request.
    ...['gzip, chunked', 'gzip'].map((coding): [string, string, number, number] => [
      `the transfer coding ${coding}`,
      `POST /plants HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: ${coding}\r\n\r\n0\r\n\r\n`,
      400,
      40000,
    ]),
    ['a target without a path', 'GET http:// HTTP/1.1\r\nHost: x\r\n\r\n', 400, 40000],
  ])('%s', async (_kind, bytes, status, error) => {
    const response = await sendRaw(service.port, bytes);
    expect(response.status).toBe(status);
    expect(response.headers).toMatchObject({
      'content-type': 'application/json; charset=utf-8',
      'x-request-id': expect.stringMatching(/^[0-9a-f-]{36}$/),
      'x-content-type-options': 'nosniff',
    });
    expect(JSON.parse(response.body)).toEqual({ error, message: expect.any(String) });
  });

  it('a request with an unknown expectation is 41700, and keeps the id that its client gave it', async () => {
    const lines = ['Host: x', 'Expect: tea', 'X-Request-Id: order-1'];
    const head = ['POST /plants HTTP/1.1', ...lines].join('\r\n');
    const response = await sendRaw(service.port, `${head}\r\n\r\n`);
    expect(response).toMatchObject({
      status: 417,
      headers: {
        'content-type': 'application/json; charset=utf-8',
        'x-request-id': 'order-1',
        'x-content-type-options': 'nosniff',
      },
    });
    expect(JSON.parse(response.body)).toEqual({ error: 41700, message: expect.any(String) });
  });

  const head = (lines: string[]) =>
    plantHead(service.token, ['Content-Type: application/json', ...lines]);

  it('header fields of nearly 16 KiB are accepted', async () => {
    const bytes = `GET /health/live HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(16_000)}\r\n\r\n`;
    expect(await sendRaw(service.port, bytes)).toMatchObject({ status: 200 });
  });

  it('a token after five hundred header fields is read', async () => {
    const others = Array.from({ length: 500 }, (_, i) => `X${i}: 1`);
    const bytes = head([]).replace('Authorization:', [...others, '$&'].join('\r\n'));
    const response = await sendRaw(service.port, bytes);
    expect(JSON.parse(response.body)).toMatchObject({ error: 40001 });
  });

  it('a chunk extension that is too large is 40000, because it is no header field', async () => {
    const chunk = `1;${'x'.repeat(20_000)}\r\na\r\n`;
    const response = await sendRaw(service.port, head([CHUNKED]) + chunk);
    expect(JSON.parse(response.body)).toMatchObject({ error: 40000 });
  });

  it('a body with Transfer-Encoding: gzip is not stored as if it were plain', async () => {
    const body = '{"id":12,"name":"a"}';
    const response = await sendRaw(
      service.port,
      head(['Transfer-Encoding: gzip, chunked']) + chunked([body]) + LAST_CHUNK,
    );
    expect(response).toMatchObject({ status: 400 });
    expect(await service.storedPlants()).not.toContainEqual(expect.objectContaining({ id: '12' }));
  });

  it('two Authorization header fields are 40101, even if the first one is valid', async () => {
    const lines = [`Authorization: Bearer ${service.token}`, 'Content-Length: 0'];
    const response = await sendRaw(service.port, head(lines));
    expect(JSON.parse(response.body)).toMatchObject({ error: 40101 });
  });

  it('HTTP/1.0 needs no Host, and its Expect is ignored', async () => {
    const body = '{"id":6,"name":"a"}';
    const request = head([`Content-Length: ${body.length}`, 'Expect: 100-continue']) + body;
    const response = await sendRaw(
      service.port,
      request.replace('HTTP/1.1', 'HTTP/1.0').replace('Host: x\r\n', ''),
    );
    expect(response.status).toBe(200);
  });

  it('16 pipelined requests are handled in order, and a connection with one more is closed', async () => {
    const live = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
    const unknown = live.replace('/health/live', '/unknown');
    const socket = await openConnection(service.port);
    socket.write((live + unknown).repeat(8));
    const responses = await readResponses(socket, 16);
    expect(responses.map(({ status }) => status)).toEqual(Array(8).fill([200, 404]).flat());
    socket.write(live.repeat(17));
    await once(socket.resume(), 'close');
    expect((await service.request('/health/live')).status).toBe(200);
  });

  it.each([['whose chunks are broken', [CHUNKED], 'zz\r\n']])(
    'a request %s does not replace the responses to the requests before it',
    async (_how, headers, part) => {
      const body = '{"id":11,"name":"a"}';
      const plant = head([`Content-Length: ${body.length}`]) + body;
      for (let before = 0; before <= 2; before++) {
        const socket = await openConnection(service.port);
        socket.write(plant.repeat(before) + head(headers) + part);
        const responses = await readResponses(socket);
        expect(responses.map(({ status }) => status)).toEqual([
          ...Array<number>(before).fill(200),
          400,
        ]);
        expect(responses.at(-1)).toMatchObject({
          headers: { connection: 'close', 'x-request-id': expect.any(String) },
        });
        expect(JSON.parse(responses.at(-1)!.body)).toMatchObject({ error: 40000 });
      }
    },
  );

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
