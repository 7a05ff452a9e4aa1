import { on, once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { get, holdRequests } from '../../test/http/held-requests.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { CHUNKED, readUnchecked } from '../../test/setup/http/raw-http.js';
import { settled } from '../../test/setup/time/settled.js';
import { connectionOf } from './pipelining.js';

const resources = useResources();

/** The most requests in the queue of one connection. */
const MAX = 16;

/** A connection whose first request is handled, and others wait. */
interface HeldConnection {
  readonly client: Socket;
  readonly socket: Socket;
  readonly response: ServerResponse;
}

const paths = (count: number) => Array.from({ length: count }, (_, i) => `/${i + 1}`);

let service: Awaited<ReturnType<typeof holdRequests>>;

beforeEach(async () => {
  service = await holdRequests(resources);
});

/** Sends requests, and other bytes after them, with one write, and waits until the server has parsed the requests. */
async function pipeline(
  requested: string[],
  bytes = '',
): Promise<{ client: Socket; socket: Socket }> {
  const { client, socket } = await service.connect();
  const parsed = on(service.server, 'request');
  client.write(requested.map(get).join('') + bytes);
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

describe('the requests of all connections that wait may take 16 MiB', () => {
  const SHARE = 65_536;
  /** The most requests that wait while one of their connection is handled. */
  const WAITING = MAX - 1;

  /** @returns a request that takes this many bytes: 4096, 64 for each text of its head, the texts, and its body as counted */
  const requestOf = (bytes: number, bodyField: string, countedBody: number, body: string) => {
    const texts = ['/2', 'Host', 'x', ...bodyField.split(': '), 'Fill', ''];
    const counted = 4096 + 64 * texts.length + texts.join('').length + countedBody;
    return `POST /2 HTTP/1.1\r\nHost: x\r\n${bodyField}\r\nFill: ${'x'.repeat(bytes - counted)}\r\n\r\n${body}`;
  };
  const LARGE = requestOf(SHARE, 'Content-Length: 60000', 60_000, 'x'.repeat(60_000));
  const WITHOUT_BODY = `GET /2 HTTP/1.1\r\nHost: x\r\nFill: ${'x'.repeat(5000)}\r\n\r\n`;

  /** Opens a connection with a request in flight and others that wait. */
  async function wait(waiting: string[]): Promise<HeldConnection> {
    const { client, socket } = await service.connect();
    client.on('error', () => undefined);
    const parsed = on(service.server, 'request');
    client.write(get('/1') + waiting.join(''));
    for (let i = 0; i < 1 + waiting.length; i++) await parsed.next();
    const { response } = await service.next();
    return { client, socket, response };
  }

  /** Lets as many requests wait, each of which takes 64 KiB. */
  async function fill(count: number): Promise<HeldConnection[]> {
    const connections: HeldConnection[] = [];
    for (let left = count; left > 0; left -= WAITING) {
      connections.push(await wait(Array<string>(Math.min(left, WAITING)).fill(LARGE)));
    }
    return connections;
  }

  /** Whether the latest request of a connection is refused. */
  const isRefused = ({ socket }: HeldConnection) => connectionOf(socket)!.refusal !== undefined;

  it('the next one gets 50301 at its turn, and its connection closes', async () => {
    const connections = await fill(256);
    expect(connections.map(isRefused)).not.toContain(true);
    const { client, response } = await wait([WITHOUT_BODY]);
    response.end('1');
    const responses = await readUnchecked(client);
    expect(responses).toMatchObject([{ status: 200, body: '1' }, { status: 503 }]);
    expect(JSON.parse(responses[1]!.body)).toMatchObject({ error: 50301 });
    expect(new Set(service.started)).toEqual(new Set(['/1']));
  });

  it.each([
    ['of chunks', CHUNKED],
    ['of more than that', 'Content-Length: 1000000'],
  ])('a body %s counts as the 64 KiB that Node reads of it', async (_, field) => {
    await fill(253);
    const counted = 71_000;
    const held = [
      await wait([requestOf(counted, field, SHARE, '')]),
      await wait([requestOf(3 * SHARE - counted - SHARE, 'Content-Length: 50000', 50_000, '')]),
      ...(await fill(1)),
    ];
    expect(held.map(isRefused)).toEqual([false, false, false]);
    expect(isRefused(await wait([WITHOUT_BODY]))).toBe(true);
  });

  it('one that had its turn takes nothing any more', async () => {
    const connections = await fill(256);
    connections.at(-1)!.response.end();
    await service.next();
    const [full] = await fill(1);
    expect(isRefused(full!)).toBe(false);
    expect(isRefused(await wait([WITHOUT_BODY]))).toBe(true);
  });

  it('those of a connection that is reset take nothing any more', async () => {
    const [{ client, response }] = (await fill(256)) as [HeldConnection];
    const closed = once(response, 'close');
    client.resetAndDestroy();
    await closed;
    await settled();
    const [full] = await fill(WAITING);
    expect(isRefused(full!)).toBe(false);
    expect(isRefused(await wait([WITHOUT_BODY]))).toBe(true);
  });
});

describe('a connection with too many requests that wait', () => {
  it(`gets the responses to the first ${MAX}, then 50301, and is closed`, async () => {
    const { client } = await pipeline(paths(MAX + 1));
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

  it.each([
    ['in the same data', 1000],
    ['in later data', 10_000],
  ])('gets none of the later ones kept, which would fill the memory: %s', async (_, count) => {
    let kept = 0;
    service.server.on('request', () => kept++);
    const { client, socket } = await service.connect();
    const ended = once(socket, 'end');
    client.end(
      paths(MAX + 1 + count)
        .map(get)
        .join(''),
    );
    await ended;
    expect(kept).toBe(MAX + 1);
  });

  it.each([
    ['an upgrade', `${get('/').trimEnd()}\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n`],
    ['a request for a tunnel', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n'],
  ])('gets its responses also if %s follows', async (_, bytes) => {
    const { client } = await pipeline(paths(MAX + 1), bytes);
    for (let count = 1; count <= MAX; count++) await respondTo(count);
    const responses = await readUnchecked(client);
    expect(responses.map(({ status }) => status)).toEqual([...Array<number>(MAX).fill(200), 503]);
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
