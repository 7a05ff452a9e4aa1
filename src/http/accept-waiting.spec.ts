import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { expect, it } from '@jest/globals';
import { acceptWaiting } from './accept-waiting.js';

it('lets no connection be reset that waits in the queue when the server closes', async () => {
  const server = createServer((socket) => socket.end('accepted'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  // The system completes these connections at once; Node has no turn to accept them before it is told to stop.
  const clients = Array.from({ length: 20 }, async () => {
    const [data] = (await once(connect(port, '127.0.0.1'), 'data')) as [Buffer];
    return data.toString();
  });
  await acceptWaiting(server);
  server.close();
  expect(await Promise.all(clients)).toEqual(clients.map(() => 'accepted'));
});
