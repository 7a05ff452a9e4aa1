import { once } from 'node:events';
import { createServer as createHttpServer, type IncomingMessage } from 'node:http';
import { createServer, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { holdCollections } from '../../test/http/held-collections.js';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { openConnection } from '../../test/setup/http/raw-http.js';
import { discardInput } from './discard-input.js';

const resources = useResources();

const hold = holdCollections();

it.each(['pause', 'resume'] as const)(
  'after %s, what arrives reaches no other listener, and ends with the side of the client',
  async (method) => {
    const server = createServer();
    const accepted = once(server, 'connection');
    const client = await openConnection((await openServer(resources, server)).port);
    const [socket] = (await accepted) as [Socket];
    const received: unknown[] = [];
    socket.on('data', (data) => received.push(data));
    socket[method]();
    discardInput(socket);
    client.end('late');
    await once(socket, 'end');
    expect(received).toEqual([]);
    expect(socket.bytesRead).toBe('late'.length);
  },
);

it('what arrives is also discarded when Node has paused the connection, because nobody reads a body', async () => {
  const server = createHttpServer();
  const arrived = once(server, 'request');
  const client = await openConnection((await openServer(resources, server)).port);
  const size = 8_000_000;
  client.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${size}\r\n\r\n`);
  const [{ socket }] = (await arrived) as [IncomingMessage];
  const paused = once(socket, 'pause');
  client.end('x'.repeat(size));
  await paused;
  const collections = hold();
  discardInput(socket);
  await once(socket, 'end');
  expect(socket.bytesRead).toBeGreaterThan(size);
  // Discarded data counts, too: there is a collection after 4 MiB.
  expect(collections).toHaveLength(1);
});
