import { createServer } from 'node:http';
import express, { type Request, type Response } from 'express';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { openConnection, readUnchecked, sendRaw } from '../../test/setup/http/raw-http.js';
import { settled } from '../../test/setup/time/settled.js';
import { classesOf } from './express-classes.js';

const resources = useResources();

it('small chunks are gathered, whenever they arrive, as a client can send one byte in each', async () => {
  const { IncomingMessage } = classesOf(express());
  const sizes = [...Array<number>(5000).fill(1), 4096, 3, 4095, 1, 2000, 2096, 2097, 5000, 7];
  const chunks = sizes.map((size, i) => String.fromCharCode(97 + (i % 26)).repeat(size));
  const parts: string[] = [];
  const server = createServer({ IncomingMessage: IncomingMessage! }, (request, response) => {
    request.on('data', (part: Buffer) => parts.push(part.toString()));
    request.on('end', () => response.end());
  });
  const { port } = await openServer(resources, server);

  const head = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  const encoded = chunks.map((chunk) => `${chunk.length.toString(16)}\r\n${chunk}\r\n`);
  const client = await openConnection(port);
  client.write(head);
  for (let i = 0; i < 200; i++) {
    client.write(encoded[i]!);
    await settled();
  }
  client.write(`${encoded.slice(200).join('')}0\r\n\r\n`);
  expect(await readUnchecked(client, 1)).toMatchObject([{ status: 200 }]);
  expect(parts.join('')).toBe(chunks.join(''));
  expect(parts.length).toBeLessThan(10);
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
