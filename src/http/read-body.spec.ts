import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { CHUNKED, chunked, LAST_CHUNK } from '../../test/setup/http/raw-http.js';
import {
  requestBytes,
  startReceiver,
  type Exchange,
  type Receiver,
} from '../../test/setup/http/receiver.js';
import { untilSettled } from '../../test/setup/time/settled.js';
import { bodyTooLarge } from '../errors/errors.js';
import { ConnectionClosed } from '../errors/service-error.js';
import { announcesBody, BODY_LIMIT_SETTING, readBody } from './read-body.js';
import { whenClosed } from './when-closed.js';

const TOO_LARGE = {
  code: bodyTooLarge.code,
  message: 'The body is larger than 10 bytes.',
};

let receiver: Receiver;
beforeAll(async () => {
  receiver = await startReceiver({ [BODY_LIMIT_SETTING]: 10 });
});
afterAll(() => receiver.close());

const send = (lines: string[], body?: string, start?: string) =>
  receiver.send(requestBytes(lines, body, start));

const read = ({ request, response }: Exchange) => readBody(request, response);

/** The outcome of a body that is read without waiting. */
function readAtOnce(exchange: Exchange): unknown {
  try {
    const body = read(exchange);
    return body instanceof Promise ? 'a promise' : body.toString();
  } catch (error) {
    return error;
  }
}

async function arrived({ request }: Exchange): Promise<void> {
  await untilSettled(() => request.complete);
}

describe('a body that has arrived before it is read', () => {
  async function sendWhole(lines: string[], body?: string): Promise<Exchange> {
    const exchange = await send(lines, body);
    await arrived(exchange);
    return exchange;
  }

  it('is read without a promise', async () => {
    expect(readAtOnce(await sendWhole(['Content-Length: 3'], 'abc'))).toBe('abc');
  });

  it('is read without a promise before Node has set complete, too', async () => {
    expect(readAtOnce(await send(['Content-Length: 3'], 'abc'))).toBe('abc');
  });

  it('is joined from all of its chunks', async () => {
    const body = chunked(['ab', 'c', 'def']) + LAST_CHUNK;
    expect(readAtOnce(await sendWhole([CHUNKED], body))).toBe('abcdef');
  });

  it.each([
    ['announces none', [], ''],
    ['has the length 0', ['Content-Length: 0'], ''],
    ['has no chunks', [CHUNKED], LAST_CHUNK],
  ])('is empty when the request %s', async (_kind, lines, body) => {
    expect(readAtOnce(await sendWhole(lines, body))).toBe('');
  });

  it('may be as large as the limit', async () => {
    expect(readAtOnce(await sendWhole(['Content-Length: 10'], '0123456789'))).toBe('0123456789');
    const body = chunked(['01234', '56789']) + LAST_CHUNK;
    expect(readAtOnce(await sendWhole([CHUNKED], body))).toBe('0123456789');
  });

  it('is refused when its chunks are larger than the limit', async () => {
    const body = chunked(['01234', '567890']) + LAST_CHUNK;
    expect(readAtOnce(await sendWhole([CHUNKED], body))).toMatchObject(TOO_LARGE);
  });
});

describe('a body that arrives while it is read', () => {
  it('is joined from its pieces', async () => {
    const exchange = await send(['Content-Length: 6'], 'ab');
    const body = read(exchange);
    await once(exchange.request, 'data');
    exchange.client.write('cdef');
    expect(String(await body)).toBe('abcdef');
  });

  it('may be as large as the limit', async () => {
    const exchange = await send([CHUNKED], chunked(['01234']));
    const body = read(exchange);
    exchange.client.write(chunked(['56789']) + LAST_CHUNK);
    expect(String(await body)).toBe('0123456789');
  });

  it('is refused as soon as it is larger than the limit, and no more of it is read', async () => {
    const exchange = await send([CHUNKED], chunked(['01234']));
    const body = read(exchange);
    exchange.client.write(chunked(['567890']));
    await expect(body).rejects.toMatchObject(TOO_LARGE);
    expect(exchange.request.isPaused()).toBe(true);
  });

  it('is refused before it arrives when its announced length is larger than the limit', async () => {
    expect(readAtOnce(await send(['Content-Length: 11']))).toMatchObject(TOO_LARGE);
  });

  it('fails when the client closes the connection before the end', async () => {
    const exchange = await send(['Content-Length: 3'], 'ab');
    const body = read(exchange);
    exchange.client.destroy();
    await expect(body).rejects.toBeInstanceOf(ConnectionClosed);
  });

  it('fails when the client closed the connection before it was read', async () => {
    const exchange = await send(['Content-Length: 3'], 'ab');
    exchange.client.destroy();
    await new Promise<void>((resolve) => whenClosed(exchange.request, resolve));
    await expect(read(exchange)).rejects.toBeInstanceOf(ConnectionClosed);
  });
});

describe('a client that waits for permission to send its body', () => {
  const LINES = ['Content-Length: 3', 'Connection: close'];
  const EXPECT = 'Expect: 100-continue';

  it('gets it when the body is read', async () => {
    const exchange = await send([EXPECT, ...LINES]);
    const body = read(exchange);
    await once(exchange.client, 'data');
    exchange.client.write('abc');
    expect(String(await body)).toBe('abc');
    exchange.response.end();
    expect(await exchange.received).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200/);
  });

  it.each([
    ['did not ask for it', [], 'POST / HTTP/1.1', ''],
    ['speaks HTTP/1.0, which does not know it', [EXPECT], 'POST / HTTP/1.0', ''],
    ['sent the body without waiting', [EXPECT], 'POST / HTTP/1.1', 'abc'],
  ])('does not get it when it %s', async (_kind, lines, start, sent) => {
    const exchange = await send([...lines, ...LINES], sent, start);
    if (sent !== '') await arrived(exchange);
    const body = read(exchange);
    if (sent === '') exchange.client.write('abc');
    expect(String(await body)).toBe('abc');
    exchange.response.end();
    expect(await exchange.received).toMatch(/^HTTP\/1\.1 200/);
  });
});

it.each([
  [true, 'a length', ['Content-Length: 1']],
  [true, 'chunks, of which there may be none', [CHUNKED]],
  [false, 'the length 0', ['Content-Length: 0']],
  [false, 'neither length nor chunks', []],
])('announcing a body is %p for a request with %s', async (announces, _kind, lines) => {
  const { request } = await send(lines);
  expect(announcesBody(request)).toBe(announces);
});
