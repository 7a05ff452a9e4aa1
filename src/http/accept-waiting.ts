import type { Server } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Node's default length of the queue. After as many turns, only connections remain that came later. */
const BACKLOG = 511;

/**
 * Accepts the connections that wait in the queue of the system, which resets them when the server closes. Node accepts
 * one in each turn of the event loop.
 */
export async function acceptWaiting(server: Server): Promise<void> {
  let hasAccepted = true;
  const onConnection = () => (hasAccepted = true);
  server.on('connection', onConnection);
  for (let turn = 0; hasAccepted && turn < BACKLOG; turn++) {
    hasAccepted = false;
    await nextTurn();
    // The first turn may end without a look at the queue: it had begun already.
    await nextTurn();
  }
  server.off('connection', onConnection);
}
