import { on, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import type { ServiceError } from '../../src/errors/service-error.js';
import type * as RefuseBadRequest from '../../src/http/refuse-bad-request.js';
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
import { useResources } from '../setup/jest/resources.js';
import { holdServiceTimers, type HeldServiceTimers } from '../setup/time/service-timers.js';
import { startService, type TestService } from '../setup/service/service.js';
import { runInThread } from '../setup/process/thread.js';

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
    ['a request for a tunnel', 'CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n', 404, 40400],
    // For the second one, Node reports an error in addition to the request. Others: refuse-bad-request.spec.ts.
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
    expect(response).toMatchObject({ status: 400, headers: { connection: 'close' } });
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

  it('the first 16 of many pipelined requests are handled, the next one is 50301, also if it is not valid, and the connection closes', async () => {
    const socket = await openConnection(service.port);
    socket.on('error', () => undefined);
    const request = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';
    const invalid = request.replace('Host: x', 'Host: a b');
    socket.write(request.repeat(16) + invalid + request.repeat(600));
    const responses = await readResponses(socket);
    expect(responses.map(({ status }) => status)).toEqual([...Array<number>(16).fill(200), 503]);
    expect(responses.at(-1)).toMatchObject({
      headers: { connection: 'close', 'x-request-id': expect.any(String) },
    });
    expect(JSON.parse(responses.at(-1)!.body)).toMatchObject({ error: 50301 });
  });

  it.each([
    ['whose chunks are broken', [CHUNKED], 'zz\r\n'],
    ['whose body ends too early', ['Content-Length: 30'], '{"id":'],
  ])(
    'a request %s does not replace the responses to the requests before it',
    async (_how, headers, part) => {
      const body = '{"id":11,"name":"a"}';
      const plant = head([`Content-Length: ${body.length}`]) + body;
      for (let before = 0; before <= 2; before++) {
        const socket = await openConnection(service.port);
        socket.end(plant.repeat(before) + head(headers) + part);
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

  it('a client that disconnects in the middle of a body does not harm the service', async () => {
    const socket = await openConnection(service.port);
    socket.write(head(['Content-Length: 50']) + '{"id":');
    socket.destroy();
    expect((await service.post('{"id":1,"name":"a"}')).status).toBe(200);
  });
});

describe('a Host that is not valid', () => {
  const resources = useResources();

  it('is refused in a time that grows no faster than its length', async () => {
    const refusal = await runInThread(
      resources,
      'http/refuse-bad-request.js',
      ({ refuseBadRequest }: typeof RefuseBadRequest, host: string) => {
        const request = { httpVersionMajor: 1, httpVersion: '1.1', headers: { host } };
        let code: number | undefined;
        const next = (error?: ServiceError) => void (code = error?.code);
        refuseBadRequest(request as IncomingMessage, {} as ServerResponse, next);
        return code;
      },
      `${'a'.repeat(10_000)}/`,
    );
    expect(refusal).toBe(40000);
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
    const service = await startService({ IDLE_TIMEOUT_MS: '300' });
    const gone = new Promise((resolve) =>
      service.app.getHttpServer().once('connection', (it: Socket) => it.once('close', resolve)),
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

describe('a client that waits for longer than it may be idle', () => {
  /** Not reached unless a test ends it, however busy the machine is. */
  const DATABASE_TIMEOUT_MS = 59_999;
  let service: TestService;
  let timers: HeldServiceTimers | undefined;

  beforeAll(async () => {
    service = await startService({
      IDLE_TIMEOUT_MS: '100',
      DATABASE_TIMEOUT_MS: String(DATABASE_TIMEOUT_MS),
    });
  });
  afterEach(() => {
    timers?.restore();
    service.proxy.restore();
  });
  afterAll(() => service.close());

  /** Sends a request, waits until its client was idle twice, ends the time of the database, and reads the response. */
  const sendAndWait = async (request: string) => {
    timers = holdServiceTimers(DATABASE_TIMEOUT_MS);
    service.proxy.freeze();
    const accepted = once(service.app.getHttpServer(), 'connection') as Promise<[Socket]>;
    const client = await openConnection(service.port);
    const [socket] = await accepted;
    const idle = on(socket, 'timeout', { close: ['close'] });
    client.write(request);
    for (let i = 0; i < 2; i++) await idle.next();
    timers.advance(DATABASE_TIMEOUT_MS);
    const [response] = await readResponses(client, 1);
    client.destroy();
    return response;
  };

  it('gets its response when the database has had its time', async () => {
    // From now on, the verdict about the token is cached.
    expect(await service.post('{"id":1,"name":"a"}')).toMatchObject({ status: 200 });
    const body = '{"id":2,"name":"a"}';
    expect(await sendAndWait(plantRequest(service.token, body))).toMatchObject({
      status: 503,
      body: expect.stringContaining('50300'),
    });
  });

  it('gets it also if its body is not read before the token is looked up', async () => {
    const lines = ['Content-Type: application/json', 'Content-Length: 1', 'Expect: 100-continue'];
    expect(await sendAndWait(plantHead(generateAccessToken(), lines))).toMatchObject({
      status: 503,
      body: expect.stringContaining('50300'),
    });
  });

  it('gets an Error if it is idle itself, in the middle of a request', async () => {
    const socket = await openConnection(service.port);
    socket.write(plantHead(service.token, ['Content-Type: application/json', 'Content-Length: 1']));
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 408 }]);
    socket.destroy();
  });
});
