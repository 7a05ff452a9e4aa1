import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { expect, it } from '@jest/globals';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { acceptWaiting } from './accept-waiting.js';

const resources = useResources();

/** The system's queue of connections, each of which Node accepts in a turn of its own. */
const BACKLOG = 511;

/** Counts turns of the event loop, and calls `inTurn` in each, until a promise settles. */
async function turnsUntil(promise: Promise<void>, inTurn = (_turn: number) => {}): Promise<number> {
  let turns = 0;
  let next = setImmediate(function turn() {
    inTurn(++turns);
    next = setImmediate(turn);
  });
  await promise;
  clearImmediate(next);
  return turns;
}

it('no connection that is in the queue when the server closes is reset', async () => {
  const server = createServer((socket) => socket.end('accepted'));
  const { port } = await openServer(resources, server);
  // The system completes these connections at once, but Node accepts them only in later turns of the event loop.
  const clients = Array.from({ length: 20 }, async () => {
    const [data] = (await once(connect(port, '127.0.0.1'), 'data')) as [Buffer];
    return data.toString();
  });
  await acceptWaiting(server);
  server.close();
  expect(await Promise.all(clients)).toEqual(clients.map(() => 'accepted'));
});

it('a server without connections in the queue waits a few turns, and keeps no listener', async () => {
  const server = createServer();
  expect(await turnsUntil(acceptWaiting(server))).toBeLessThan(10);
  expect(server.listenerCount('connection')).toBe(0);
});

it('connections without end do not keep the server from closing', async () => {
  const server = createServer();
  const turns = await turnsUntil(acceptWaiting(server), (turn) => {
    if (turn < 10 * BACKLOG) server.emit('connection');
  });
  expect(turns).toBeGreaterThan(BACKLOG);
  expect(turns).toBeLessThan(3 * BACKLOG);
});
