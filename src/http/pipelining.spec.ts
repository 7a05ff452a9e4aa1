import { on, once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { get, holdRequests } from '../../test/http/held-requests.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { readUnchecked } from '../../test/setup/http/raw-http.js';
import { chainsSettled, settled } from '../../test/setup/time/settled.js';
import { connectionOf } from './pipelining.js';

const resources = useResources();

/** The most requests in the queue of one connection. */
const MAX = 16;

const paths = (count: number) => Array.from({ length: count }, (_, i) => `/${i + 1}`);

let service: Awaited<ReturnType<typeof holdRequests>>;

beforeEach(async () => {
  service = await holdRequests(resources);
});

/** Sends requests with one write, and waits until the server has parsed them all. */
async function pipeline(requested: string[]): Promise<{ client: Socket; socket: Socket }> {
  const { client, socket } = await service.connect();
  const parsed = on(service.server, 'request');
  client.write(requested.map(get).join(''));
  for (let i = 0; i < requested.length; i++) await parsed.next();
  return { client, socket };
}

/** Expects that this many requests had their turn, and responds to the latest; the turn of the next one may come then. */
async function respondTo(count: number): Promise<void> {
  await settled();
  expect(service.started).toEqual(paths(count));
  const { response } = await service.next();
  const closed = once(response, 'close');
  response.end(String(count));
  await closed;
}

describe('the requests of one connection', () => {
  it('are handled one after the other', async () => {
    const { client } = await pipeline(['/1', '/2', '/3']);
    for (const count of [1, 2, 3]) await respondTo(count);
    const responses = await readUnchecked(client, 3);
    expect(responses.map(({ body }) => body)).toEqual(['1', '2', '3']);
  });

  it('wait until the resources of the request before them are released', async () => {
    await pipeline(['/1', '/2']);
    const { response } = await service.next();
    const startedAtRelease: string[][] = [];
    response.once('close', () => startedAtRelease.push([...service.started]));
    response.end();
    await service.next();
    expect(startedAtRelease).toEqual([['/1']]);
  });

  it('do not wait for those of other connections', async () => {
    await pipeline(['/1']);
    await pipeline(['/2']);
    expect(service.started).toEqual(['/1', '/2']);
  });

  it('are handled at once if they come after the last response', async () => {
    const { client } = await pipeline(['/1']);
    (await service.next()).response.end('1');
    await readUnchecked(client, 1);
    client.write(get('/2'));
    (await service.next()).response.end('2');
    expect(await readUnchecked(client, 1)).toMatchObject([{ body: '2' }]);
  });

  it('that wait are never started when the client has gone', async () => {
    const { client } = await pipeline(['/1', '/2']);
    const { response } = await service.next();
    const closed = once(response, 'close');
    client.resetAndDestroy();
    await closed;
    await settled();
    expect(service.started).toEqual(['/1']);
  });

  it('are ignored after the response that closed the connection', async () => {
    const client = connect({ port: service.port, host: '127.0.0.1', allowHalfOpen: true });
    client.write(get('/1'));
    const { request, response } = await service.next();
    const closed = once(response, 'close');
    response.end('1');
    await closed;
    request.socket.end();
    await once(client.resume(), 'end');
    const parsed = once(service.server, 'request');
    client.write(get('/2'));
    await parsed;
    await settled();
    expect(service.started).toEqual(['/1']);
  });

  it('leave their latest response with the connection, which has none before', async () => {
    const { client, socket } = await service.connect();
    expect(connectionOf(socket)).toBeUndefined();
    client.write(get('/1') + get('/2'));
    const first = (await service.next()).response;
    first.end();
    const second = (await service.next()).response;
    expect(connectionOf(socket)!.latest).toBe(second);
  });
});

describe('requests with large bodies that wait', () => {
  const SIZE = 60_000;

  it.each([
    ['of an announced length', `Content-Length: ${SIZE}\r\n\r\n${'x'.repeat(SIZE)}`],
    [
      'of chunks',
      `Transfer-Encoding: chunked\r\n\r\n${SIZE.toString(16)}\r\n${'x'.repeat(SIZE)}\r\n0\r\n\r\n`,
    ],
  ])('are left with the client until their turn: %s', async (_, rest) => {
    const { client, socket } = await service.connect();
    const requested = paths(MAX);
    await new Promise((resolve) =>
      client.write(
        requested.map((path) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${rest}`).join(''),
        resolve,
      ),
    );
    for (let count = 1; count <= MAX; count++) {
      const { response } = await service.next();
      await chainsSettled();
      // Node reads 64 KiB at a time.
      expect(socket.bytesRead).toBeLessThan((count + 2) * 65_536);
      response.end(String(count));
    }
    const responses = await readUnchecked(client, MAX);
    expect(responses.map(({ body }) => body)).toEqual(requested.map((path) => path.slice(1)));
  });
});

it('a connection is read again after a large body that waited and had arrived as a whole', async () => {
  const { client } = await service.connect();
  const parsed = on(service.server, 'request');
  const size = 5000;
  client.write(
    `${get('/1')}POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n${'x'.repeat(size)}`,
  );
  for (let i = 0; i < 2; i++) await parsed.next();
  await respondTo(1);
  await respondTo(2);
  client.write(get('/3'));
  await service.next();
  expect(service.started).toEqual(paths(3));
});

describe('requests with small bodies that wait', () => {
  it.each([
    ['of an announced length', `Content-Length: 4096\r\n\r\n${'x'.repeat(4096)}`],
    ['of chunks', `Transfer-Encoding: chunked\r\n\r\n1000\r\n${'x'.repeat(4096)}\r\n0\r\n\r\n`],
  ])('are all read, so that a client that resets is noticed: %s', async (_, rest) => {
    const { client } = await service.connect();
    const parsed = on(service.server, 'request');
    for (const path of paths(MAX)) {
      client.write(`POST ${path} HTTP/1.1\r\nHost: x\r\n${rest}`);
      await parsed.next();
    }
    const { response } = await service.next();
    const closed = once(response, 'close');
    client.resetAndDestroy();
    await closed;
  });
});

describe('a connection with too many requests that wait', () => {
  it(`gets the responses to the first ${MAX}, then 50301, and is closed`, async () => {
    const { client } = await pipeline(paths(MAX + 3));
    for (let count = 1; count <= MAX; count++) await respondTo(count);
    const responses = await readUnchecked(client);
    expect(responses.map(({ status }) => status)).toEqual([...Array<number>(MAX).fill(200), 503]);
    expect(responses.map(({ headers }) => headers['connection'])).toEqual([
      ...Array<string>(MAX).fill('keep-alive'),
      'close',
    ]);
    expect(JSON.parse(responses.at(-1)!.body)).toMatchObject({ error: 50301 });
    expect(service.started).toEqual(paths(MAX));
  });

  it('gets none of the later ones parsed, which would fill the memory', async () => {
    let parsed = 0;
    service.server.on('request', () => parsed++);
    const { client, socket } = await pipeline(paths(MAX + 1));
    const ended = once(socket, 'end');
    client.end(paths(10_000).map(get).join(''));
    await ended;
    expect(parsed).toBe(MAX + 1);
  });

  it(`is one with more than ${MAX}`, async () => {
    const { client } = await pipeline(paths(MAX));
    for (let count = 1; count <= MAX; count++) await respondTo(count);
    const responses = await readUnchecked(client, MAX);
    expect(responses.map(({ status }) => status)).toEqual(Array<number>(MAX).fill(200));
  });

  it('is not one that sends many requests, each after a response', async () => {
    const { client } = await pipeline(['/1', '/2']);
    const count = 2 * MAX;
    for (let sent = 3; sent <= count; sent++) {
      const parsed = once(service.server, 'request');
      client.write(get(`/${sent}`));
      await parsed;
      await respondTo(sent - 2);
    }
    for (const last of [count - 1, count]) await respondTo(last);
    const responses = await readUnchecked(client, count);
    expect(responses.map(({ status }) => status)).toEqual(Array<number>(count).fill(200));
  });
});

describe('what Express does not handle', () => {
  it.each([
    ['a target without a path', 'http://', 400, 40000, 'The target of the request is not a path.'],
    ['a fault', '/fault', 500, 50000, expect.stringMatching(/The fault is ours/)],
  ])(
    '%s is an Error with the usual header fields',
    async (_what, target, status, error, message) => {
      const { client } = await service.connect();
      client.write(get(target));
      const [response] = await readUnchecked(client, 1);
      expect(response).toMatchObject({ status, headers: { 'x-content-type-options': 'nosniff' } });
      expect(JSON.parse(response!.body)).toEqual({ error, message });
    },
  );
});
