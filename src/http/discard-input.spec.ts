import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { openConnection } from '../../test/setup/http/raw-http.js';
import { discardInput } from './discard-input.js';

const resources = useResources();

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
