import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { discardInput } from './discard-input.js';
import { whenClosed } from './when-closed.js';

/** How long a client may take to close its side if it gets its last response while the server stops. */
const STOPPING_LIMIT_MS = 1000;

/** Emitted on the server when it is about to stop. */
export const STOP_LINGERING_EVENT = 'stop-lingering';

/**
 * Keeps a connection open until its client has read the last response. Destroying a connection with unread data resets
 * it, and the client may lose the response (RFC 9112 section 9.6). Instead, this side is closed, and data that arrives is
 * discarded until the client closes its side.
 *
 * @param limit how long a client may take to close its side, in milliseconds, whatever it sends
 */
export function lingerAtEnd(server: Server, limit: number): void {
  let currentLimit = limit;
  const lingering = new Set<Socket>();

  const linger = (socket: Socket) => {
    if (lingering.has(socket)) return;
    lingering.add(socket);
    socket.end();
    discardInput(socket);
    const deadline = setTimeout(() => socket.destroy(), currentLimit);
    whenClosed(socket, () => {
      clearTimeout(deadline);
      lingering.delete(socket);
    });
  };

  server.on('connection', (socket: Socket) => {
    // Node calls this method after it has written the last response.
    socket.destroySoon = () => linger(socket);
  });
  server.on(STOP_LINGERING_EVENT, () => {
    currentLimit = Math.min(limit, STOPPING_LIMIT_MS);
    for (const socket of lingering) socket.destroy();
  });
}
