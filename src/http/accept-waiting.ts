// For clients that connect in the moment of a stop, as in a rolling update.

import type { Server } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Node's default length of the operating system's queue, and so the most connections that can be in it. */
const BACKLOG = 511;

/**
 * Accepts the connections in the queue of the operating system, which would reset them when the server closes. Node accepts one
 * connection in each turn of the event loop.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let hasAccepted = true;
  const onConnection = () => (hasAccepted = true);
  server.on('connection', onConnection);
  for (let turn = 0; hasAccepted && turn < BACKLOG; turn++) {
    hasAccepted = false;
    await nextTurn();
    // The first turn may already be past the point at which Node accepts connections, so one turn is not enough.
    await nextTurn();
  }
  server.off('connection', onConnection);
}
