import { once } from 'node:events';
import { createServer } from 'node:http';
import express, { type Request, type Response } from 'express';
import { describe, expect, it } from '@jest/globals';
import { holdCollections } from '../../test/http/held-collections.js';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import {
  CHUNKED,
  chunked,
  LAST_CHUNK,
  openConnection,
  readUnchecked,
  sendRaw,
} from '../../test/setup/http/raw-http.js';
import { settled } from '../../test/setup/time/settled.js';
import { until } from '../../test/setup/time/until.js';
import { classesOf } from './express-classes.js';

const resources = useResources();

const hold = holdCollections();

describe('the chunks of a body', () => {
  const sizes = [...Array<number>(5000).fill(1), 4096, 3, 4095, 1, 2000, 2096, 2097, 5000, 7];
  const chunks = sizes.map((size, i) => String.fromCharCode(97 + (i % 26)).repeat(size));
  const encoded = chunks.map((chunk) => chunked([chunk]));
  const head = `POST / HTTP/1.1\r\nHost: x\r\n${CHUNKED}\r\n\r\n`;

  /** Sends the head of a request. */
  async function startRequest() {
    const { IncomingMessage } = classesOf(express());
    const server = createServer({ IncomingMessage: IncomingMessage! });
    const arrived = once(server, 'request');
    const client = await openConnection((await openServer(resources, server)).port);
    client.write(head);
    const [request, response] = (await arrived) as [Request, Response];
    return { client, request, response };
  }

  /** Sends the head and some chunks, each alone, and then reads the body while the others arrive. */
  async function readAfter(count: number): Promise<string[]> {
    const { client, request, response } = await startRequest();
    for (let i = 0; i < Math.min(count, 200); i++) {
      client.write(encoded[i]!);
      await settled();
    }
    client.write(encoded.slice(200, count).join(''));
    const sent = head + encoded.slice(0, count).join('');
    await until(() => request.socket.bytesRead === sent.length);
    const parts: string[] = [];
    request.on('data', (part: Buffer) => parts.push(part.toString()));
    request.on('end', () => response.end());
    client.write(`${encoded.slice(count).join('')}0\r\n\r\n`);
    expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200 }]);
    return parts;
  }

  it('are gathered if they are small, whenever they arrive, until the body is read: thousands would take much memory', async () => {
    const parts = await readAfter(chunks.length);
    expect(parts.join('')).toBe(chunks.join(''));
    expect(parts.length).toBeLessThan(10);
  });

  it('are read as they arrive when somebody reads the body', async () => {
    const { client, request } = await startRequest();
    const sent = '1\r\na\r\n1\r\nb\r\n';
    client.write(sent);
    await until(() => request.socket.bytesRead === head.length + sent.length);
    expect(await once(request, 'data')).toEqual([Buffer.from('ab')]);
    client.write('1\r\nc\r\n');
    expect(await once(request, 'data')).toEqual([Buffer.from('c')]);
    client.destroy();
  });

  it('are not all read while nobody reads the body, even if each is small', async () => {
    const { client, request } = await startRequest();
    client.write('1\r\na\r\n'.repeat(200_000));
    await until(() => request.socket.isPaused());
    expect(request.readableLength).toBeLessThan(2 * request.readableHighWaterMark);
    client.destroy();
  });

  it.each([0, 1, 100, 5003])(
    'are read in their order, after %i that nobody read',
    async (count) => {
      const parts = await readAfter(count);
      expect(parts.join('')).toBe(chunks.join(''));
    },
  );
});

it.each([
  ['of a known length', `Content-Length: 4194304\r\n\r\n${'x'.repeat(4_194_304)}`],
  ['in chunks', `${CHUNKED}\r\n\r\n${chunked(['x'.repeat(4_194_304)])}${LAST_CHUNK}`],
])('garbage is collected when 4 MiB of a body have arrived: one %s', async (_, rest) => {
  const collections = hold();
  const { IncomingMessage } = classesOf(express());
  const server = createServer({ IncomingMessage: IncomingMessage! }, (request, response) => {
    request.resume().once('end', () => response.end());
  });
  const { port } = await openServer(resources, server);
  await sendRaw(port, `POST / HTTP/1.1\r\nHost: x\r\n${rest}`);
  expect(collections).toHaveLength(1);
});

it('requests and responses have the methods of Express, which changes no prototype', async () => {
  const app = express();
  const handled: [Request, Response][] = [];
  app.get('/', (request, response) => {
    handled.push([request, response]);
    response.type('text').send(request.get('X-Name'));
  });
  const classes = classesOf(app);
  const prototypes = [classes.IncomingMessage!.prototype, classes.ServerResponse!.prototype];
  const hasPrototypes = (objects: object[]) =>
    objects.every((object, i) => Object.getPrototypeOf(object) === prototypes[i]);
  const server = createServer(classes, (request, response) => {
    expect(hasPrototypes([request, response])).toBe(true);
    app(request, response);
  });
  const { port } = await openServer(resources, server);

  const response = await sendRaw(port, 'GET / HTTP/1.1\r\nHost: x\r\nX-Name: Rosa\r\n\r\n');
  expect(response).toMatchObject({ status: 200, body: 'Rosa' });
  expect(hasPrototypes(handled[0]!)).toBe(true);
});
