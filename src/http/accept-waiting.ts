import type { Server } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Node's default length of the operating system's queue: more connections cannot have waited at the start. */
const BACKLOG = 511;

/**
 * Accepts the connections in the queue of the operating system, which would reset them when the server closes. Node
 * accepts one connection in each turn of the event loop.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let hasAccepted = true;
  const onConnection = () => (hasAccepted = true);
  server.on('connection', onConnection);
  for (let turn = 0; hasAccepted && turn < BACKLOG; turn++) {
    hasAccepted = false;
    await nextTurn();
    // The current turn may be past its look at the queue, so only the next one is sure to accept a connection.
    await nextTurn();
  }
  server.off('connection', onConnection);
}
