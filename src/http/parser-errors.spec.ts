import { on, once } from 'node:events';
import type { Socket } from 'node:net';
import { getDefaultHighWaterMark } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { get, holdRequests } from '../../test/http/held-requests.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { chunked, readUnchecked, type RawResponse } from '../../test/setup/http/raw-http.js';
import { settled } from '../../test/setup/time/settled.js';
import { until } from '../../test/setup/time/until.js';
import { sentError } from '../errors/send-error.js';
import { lingerAtEnd } from './linger.js';
import { respondToParserErrors } from './parser-errors.js';

const resources = useResources();

const LINGER_LIMIT_MS = 60_000;

const GARBAGE = 'garbage\r\n\r\n';
const TUNNEL = 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n';
/** The header of a request, and a part of its body; the next part can be invalid. */
const PART = 'POST /part HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n';
const INVALID_PART = 'zz\r\n';
/** The header of a request whose body is larger than what Node reads while the service does not read it, and most of that body. */
const HEAD_OF_LARGE = 'POST /large HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n';
const LARGE = 'x'.repeat(70_000);
const END_OF_HEAD = '\r\n\r\n';
/** More bytes than the buffers of a connection take while its client reads nothing. */
const MORE_THAN_BUFFERS = 2 ** 24;
const expecting = (expectation: string) =>
  `POST /e HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: ${expectation}\r\n\r\n`;

let service: Awaited<ReturnType<typeof holdRequests>>;
let client: Socket;
let socket: Socket;

async function open(options: Parameters<typeof holdRequests>[1] = {}): Promise<void> {
  service = await holdRequests(resources, { requireHostHeader: false, ...options }, (server) => {
    lingerAtEnd(server, LINGER_LIMIT_MS);
    respondToParserErrors(server);
  });
  ({ client, socket } = await service.connect());
  client.on('error', () => undefined);
}

/** Makes what has not arrived late. Before, on a busy machine, a request that a test needs could be late itself. */
function endRequestTimeouts(): void {
  Object.assign(service.server, { requestTimeout: 1, headersTimeout: 1 });
}

/** Sends bytes that the server refuses, and waits until it has ended its side of the connection. */
async function sendToEnd(bytes: string, event: string): Promise<RawResponse[]> {
  const noticed = once(service.server, event);
  client.write(bytes);
  await noticed;
  await settled();
  expect(socket.writableEnded).toBe(true);
  return readUnchecked(client);
}

/** Sends bytes, and reads the responses until the server closes the connection. */
async function send(bytes: string): Promise<RawResponse[]> {
  client.write(bytes);
  return readUnchecked(client);
}

const statusesOf = (responses: RawResponse[]) => responses.map(({ status }) => status);

function expectLast({ headers, body }: RawResponse, error: number, message: string): void {
  expect(headers).toMatchObject({
    connection: 'close',
    'content-type': 'application/json; charset=utf-8',
    'x-content-type-options': 'nosniff',
  });
  expect(JSON.parse(body)).toEqual({ error, message });
}

const NOT_HTTP = 'The request is not valid HTTP.';
const ONLY_KNOWN = 'Only Expect: 100-continue is understood.';

beforeEach(() => open());

describe('what Node cannot parse, or would refuse by itself, is an Error and closes the connection', () => {
  it.each([
    ['an unknown method', get('/').replace('GET', 'BREW'), 'clientError', 40000, NOT_HTTP],
    [
      'a header of more than 16 KiB',
      get(`/${'x'.repeat(20_000)}`),
      'clientError',
      43100,
      'The header fields are too large.',
    ],
    ['a request for a tunnel', TUNNEL, 'connect', 40400, 'This service is not a proxy.'],
    ['an unknown expectation', expecting('tea'), 'checkExpectation', 41700, ONLY_KNOWN],
    [
      'an unknown expectation besides a known one',
      expecting('100-continue, tea'),
      'checkContinue',
      41700,
      ONLY_KNOWN,
    ],
  ])('%s', async (_what, bytes, event, error, message) => {
    const responses = await sendToEnd(bytes, event);
    expect(statusesOf(responses)).toEqual([Math.floor(error / 100)]);
    expectLast(responses[0]!, error, message);
    expect(service.started).toEqual([]);
  });

  it('a request that does not arrive in time', async () => {
    await open({ requestTimeout: 1, headersTimeout: 1, connectionsCheckingInterval: 1 });
    const [response] = await send('GET / HTTP/1.1\r\n');
    expect(response).toMatchObject({ status: 408 });
    expectLast(response!, 40800, 'The request did not arrive in time.');
  });

  it.each([
    ['does not arrive in time, while another one is in flight', 'one', 408],
    ['the service does not read in time, because another one is in flight', LARGE, 503],
  ])('a request that %s', async (_what, body, status) => {
    await open({ connectionsCheckingInterval: 1 });
    const late = once(service.server, 'clientError');
    const parsed = on(service.server, 'request');
    client.write(`${get('/1')}${HEAD_OF_LARGE}${body}`);
    for (let i = 0; i < 2; i++) await parsed.next();
    await until(() => socket.isPaused() === (body === LARGE));
    endRequestTimeouts();
    await late;
    const { response } = await service.next();
    response.end('first');
    const responses = await readUnchecked(client);
    expect(responses).toMatchObject([{ status: 200, body: 'first' }, { status }]);
  });

  it('a request that the service does not read in time', async () => {
    await open({ connectionsCheckingInterval: 1 });
    client.write(`${HEAD_OF_LARGE}${LARGE}`);
    await service.next();
    await until(() => socket.isPaused());
    endRequestTimeouts();
    expect(await readUnchecked(client)).toMatchObject([{ status: 503 }]);
  });
});

it('requests after one that does not arrive in time are ignored', async () => {
  await open({ connectionsCheckingInterval: 1 });
  let kept = 0;
  service.server.on('request', () => kept++);
  client.write(get('/1') + get('/2').trimEnd());
  const { response } = await service.next();
  const late = once(service.server, 'clientError');
  endRequestTimeouts();
  await late;
  const ended = once(socket, 'end');
  client.end(END_OF_HEAD + get('/3').repeat(100));
  await ended;
  response.end('first');
  const responses = await readUnchecked(client);
  expect(responses).toMatchObject([{ status: 200, body: 'first' }, { status: 408 }]);
  expect(kept).toBe(1);
});

it('a connection with a request for a tunnel, whose client does not read, ends after its idle timeout', async () => {
  const tunnel = once(service.server, 'connect');
  client.write(get('/1') + TUNNEL);
  await tunnel;
  // `once` of node:events would listen for errors, too.
  const closed = new Promise((resolve) => void socket.once('close', resolve));
  socket.setTimeout(1);
  await closed;
});

describe('a request with an unknown expectation', () => {
  it('after a request in flight gets its Error after the response to that request', async () => {
    const parsed = on(service.server, 'request');
    client.write(get('/1') + expecting('tea') + get('/3'));
    const { response } = await service.next();
    for (let i = 0; i < 2; i++) await parsed.next();
    await settled();
    expect(socket.bytesWritten).toBe(0);
    response.end('first');
    const responses = await readUnchecked(client);
    expect(responses).toMatchObject([{ status: 200, body: 'first' }, { status: 417 }]);
    expectLast(responses[1]!, 41700, ONLY_KNOWN);
    expect(service.started).toEqual(['/1']);
  });

  it.each([
    ['followed by garbage', `${expecting('tea')}aa${GARBAGE}`],
    [
      'with an invalid part of its body',
      `${PART.replace('/part', '/e').replace('Host: x', 'Host: x\r\nExpect: tea')}${INVALID_PART}`,
    ],
    ['followed by a valid request', `${expecting('tea')}aa${get('/2')}`],
  ])('is the last one, and nothing after it gets a response: %s', async (_, bytes) => {
    const responses = await send(bytes);
    expect(statusesOf(responses)).toEqual([417]);
    expectLast(responses[0]!, 41700, ONLY_KNOWN);
  });

  it('gets its own Error also if too many requests of its connection wait', async () => {
    const noticed = once(service.server, 'checkExpectation');
    client.write(get('/1').repeat(16) + expecting('tea'));
    await noticed;
    for (let i = 0; i < 16; i++) (await service.next()).response.end();
    const responses = await readUnchecked(client);
    expect(statusesOf(responses)).toEqual([...Array<number>(16).fill(200), 417]);
    expectLast(responses.at(-1)!, 41700, ONLY_KNOWN);
  });
});

describe('a request with Expect: 100-continue', () => {
  it.each(['100-continue', '100-Continue'])(
    'is handled, and gets no 100 before its body is read (%s)',
    async (expectation) => {
      const noticed = once(service.server, 'checkContinue');
      client.write(expecting(expectation));
      await noticed;
      expect(service.started).toEqual(['/e']);
      const { response } = await service.next();
      expect(response.writableLength + socket.bytesWritten).toBe(0);
      response.end('handled');
      expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200, body: 'handled' }]);
    },
  );
});

describe.each([
  ['garbage', GARBAGE, 400],
  ['a request for a tunnel', TUNNEL, 404],
])('%s', (_what, bytes, status) => {
  it('after a request in flight gets its Error after the response to that request', async () => {
    const fails = once(service.server, status === 400 ? 'clientError' : 'connect');
    client.write(get('/1') + bytes);
    const { response } = await service.next();
    await fails;
    expect(socket.bytesWritten).toBe(0);
    response.end('first');
    expect(await readUnchecked(client)).toMatchObject([
      { status: 200, body: 'first' },
      { status, headers: { connection: 'close' } },
    ]);
  });

  it('after a complete response gets its Error at once', async () => {
    client.write(get('/1'));
    (await service.next()).response.end('first');
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200 }]);
    expect(statusesOf(await send(bytes))).toEqual([status]);
  });

  it('after the last response is ignored', async () => {
    const fails = once(service.server, status === 400 ? 'clientError' : 'connect');
    client.write(get('/1') + bytes);
    const { response } = await service.next();
    await fails;
    response.setHeader('Connection', 'close');
    response.end('last');
    expect(await readUnchecked(client)).toMatchObject([{ status: 200, body: 'last' }]);
  });

  it('with a reset of the connection does not harm the service', async () => {
    client.write(bytes);
    await once(client, 'data');
    // `once` of node:events would listen for errors, too.
    const closed = new Promise((resolve) => void socket.once('close', resolve));
    client.resetAndDestroy();
    await closed;
    ({ client } = await service.connect());
    client.write(get('/1'));
    (await service.next()).response.end();
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200 }]);
  });
});

describe('a request whose body is invalid', () => {
  it('gets the Error as its own response', async () => {
    client.write(PART);
    const { response } = await service.next();
    const responses = await sendToEnd(INVALID_PART, 'clientError');
    expect(statusesOf(responses)).toEqual([400]);
    expect(responses[0]!.headers['connection']).toBe('close');
    expect(sentError(response)).toMatchObject({ code: 40000, message: NOT_HTTP });
  });

  it('gets no second response, and loses its connection', async () => {
    client.write(PART);
    const { response } = await service.next();
    response.end('early');
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200, body: 'early' }]);
    expect(await send(INVALID_PART)).toEqual([]);
  });

  it('does not cut off the response that its client has not read yet', async () => {
    const body = 'x'.repeat(MORE_THAN_BUFFERS);
    client.write(PART);
    const { response } = await service.next();
    response.setHeader('Content-Length', body.length);
    response.end(body);
    const fails = once(service.server, 'clientError');
    client.write(INVALID_PART);
    await fails;
    expect(response.writableFinished).toBe(false);
    const received = await buffer(client);
    expect(received.length - received.indexOf(END_OF_HEAD)).toBe(END_OF_HEAD.length + body.length);
  });

  it('gets its Error after the responses to the requests before it', async () => {
    const fails = once(service.server, 'clientError');
    client.write(get('/1') + get('/2') + PART + INVALID_PART);
    await fails;
    for (const path of ['/1', '/2']) {
      const { request, response } = await service.next();
      expect(request.path).toBe(path);
      response.end();
    }
    const responses = await readUnchecked(client);
    expect(statusesOf(responses)).toEqual([200, 200, 400]);
    expect(responses[2]!.headers['connection']).toBe('close');
  });

  it('gets its Error also if Node has paused the connection, because nobody reads the body', async () => {
    const fails = once(service.server, 'clientError');
    const sent = get('/1') + PART + chunked(['x'.repeat(getDefaultHighWaterMark(false) - 10)]);
    client.write(sent);
    await until(() => socket.bytesRead === sent.length);
    client.write(chunked(['x'.repeat(10)]) + INVALID_PART);
    await fails;
    (await service.next()).response.end();
    expect(statusesOf(await readUnchecked(client))).toEqual([200, 400]);
  });

  it('gets the Error that it had already for another reason', async () => {
    const fails = once(service.server, 'clientError');
    client.write(get('/1').repeat(16) + PART + INVALID_PART);
    await fails;
    for (let i = 0; i < 16; i++) (await service.next()).response.end();
    const responses = await readUnchecked(client);
    expect(statusesOf(responses)).toEqual([...Array<number>(16).fill(200), 503]);
  });

  it('gets no response when the client has gone, so that the log does not say 400', async () => {
    client.write(PART);
    const { response } = await service.next();
    const closed = once(response, 'close');
    const fails = once(service.server, 'clientError');
    client.resetAndDestroy();
    await Promise.all([closed, fails]);
    expect(sentError(response)).toBeUndefined();
    expect(response.headersSent).toBe(false);
  });
});
