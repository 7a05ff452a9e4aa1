import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import {
  CHUNKED,
  chunked,
  LAST_CHUNK,
  openConnection,
  plantHead,
  readResponses,
  sendRaw,
} from '../setup/http/raw-http.js';
import { untilIdle } from '../setup/service/clean-state.js';
import { startService, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';

const TEXT = 'Content-Type: text/plain';
const JSON_TYPE = 'Content-Type: application/json';

describe('the checks come in order', () => {
  let service: TestService;
  // A token in the cache stays valid, however long a test takes.
  holdClock();

  beforeAll(async () => {
    service = await startService({ BODY_LIMIT: '100' });
  });
  afterAll(() => service.close());

  const request = (target: string, token: string | undefined, lines: string[], body = '') =>
    [
      `POST ${target} HTTP/1.1`,
      'Host: x',
      ...(token === undefined ? [] : [`Authorization: Bearer ${token}`]),
      ...lines,
      '',
      body,
    ].join('\r\n');

  it.each<[string, number, string, 'right' | 'wrong' | 'none', string[], string]>([
    ['route before token', 40400, '/nowhere', 'wrong', [TEXT, 'Content-Length: 9999'], ''],
    ['token before media type', 40100, '/plants', 'none', [TEXT, 'Content-Length: 9999'], ''],
    ['token before size', 40101, '/plants', 'wrong', [JSON_TYPE, 'Content-Length: 9999'], ''],
    ['media type before size', 40002, '/plants', 'right', [TEXT, 'Content-Length: 9999'], ''],
    ['size before JSON', 40003, '/plants', 'right', [JSON_TYPE, 'Content-Length: 9999'], '{{{'],
    ['JSON before schema', 40004, '/plants', 'right', [JSON_TYPE, 'Content-Length: 8'], '{"id":"}'],
    ['schema before store', 40005, '/plants', 'right', [JSON_TYPE, 'Content-Length: 2'], '{}'],
  ])('%s: %d', async (_name, error, target, token, lines, body) => {
    const tokens = { right: service.token, wrong: 'wrong', none: undefined };
    const response = await sendRaw(service.port, request(target, tokens[token], lines, body));
    expect(JSON.parse(response.body)).toMatchObject({ error });
  });

  it.each([
    ['sends no byte of its body', []],
    ['waits for 100 Continue', ['Expect: 100-continue']],
  ])('an unauthenticated client that %s gets its response', async (_kind, lines) => {
    const announced = [JSON_TYPE, 'Content-Length: 50', ...lines];
    const response = await sendRaw(service.port, request('/plants', undefined, announced));
    expect(response.status).toBe(401);
  });

  it('an authenticated client that waits for 100 Continue gets it, and then its response', async () => {
    const socket = await openConnection(service.port);
    const lines = [JSON_TYPE, 'Transfer-Encoding: Chunked', 'Expect: 100-Continue'];
    socket.write(request('/plants', service.token, lines));
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 100 }]);
    socket.write(chunked(['{"id":1,"name":"a"}']) + LAST_CHUNK);
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 200, body: '{"name":"a"}' }]);
    socket.destroy();
  });

  it('a request that is refused before the store takes no database connection', async () => {
    await service.post('{}');
    // The use of the token is stored in the background.
    await untilIdle(service.app);
    service.proxy.cut();
    const before = service.proxy.connections;
    try {
      const responses = await Promise.all([
        service.post('{}'),
        service.post('{'),
        service.post(''),
        service.post('x'.repeat(101)),
        service.post('{}', { 'content-type': 'text/plain' }),
        service.post('{}', { authorization: '' }),
        service.post('{}', { authorization: 'Bearer wrong' }),
        // The checksum is wrong.
        service.post('{}', { authorization: `Bearer plantstore_${'0'.repeat(49)}` }),
        service.request('/plants'),
        service.request('/nowhere'),
        service.request('/health/live'),
      ]);
      expect(responses.map(({ body }) => (body as { error?: number }).error)).toEqual([
        40005,
        40004,
        40001,
        40003,
        40002,
        40100,
        40101,
        40101,
        40500,
        40400,
        undefined,
      ]);
      expect(service.proxy.connections).toBe(before);
    } finally {
      service.proxy.restore();
    }
  });
});

it('a body that never ends after an early error is cut off after REQUEST_TIMEOUT_MS', async () => {
  const service = await startService({ REQUEST_TIMEOUT_MS: '300' });
  const socket = await openConnection(service.port);
  socket.on('error', () => undefined);
  socket.write(plantHead('wrong', [JSON_TYPE, CHUNKED]));
  await readResponses(socket, 1);
  socket.resume();
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
  const send = () => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', send);
  send();
  await closed;
  await service.close();
});
