import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import { acceptWaiting } from './accept-waiting.js';

it('no connection that is in the queue when the server closes is reset', async () => {
  const server = createServer((socket) => socket.end('accepted'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // The system completes these connections at once, but Node accepts them only in later turns of the event loop.
  const clients = Array.from({ length: 20 }, async () => {
    const [data] = (await once(connect(port, '127.0.0.1'), 'data')) as [Buffer];
    return data.toString();
  });
  await acceptWaiting(server);
  server.close();
  expect(await Promise.all(clients)).toEqual(clients.map(() => 'accepted'));
});
