import type { Server } from 'node:http';
import type { Socket } from 'node:net';

/** How long a client may take when the server is about to stop. */
const STOPPING_LIMIT_MS = 1000;

/** Emitted on the server when it is about to stop. */
export const STOP_LINGERING_EVENT = 'stop-lingering';

/**
 * Lets clients have the last response of their connection before it is destroyed. A connection that is destroyed while
 * data of its client is unread is reset, and a reset can destroy the response on its way (RFC 9112 section 9.6). So this
 * side is closed, and what still comes is discarded until the client has closed the other side.
 *
 * @param limit how long a client may take to close, in milliseconds, whatever it sends
 */
export function lingerAtEnd(server: Server, limit: number): void {
  let currentLimit = limit;
  const lingering = new Set<Socket>();

  const linger = (socket: Socket) => {
    if (lingering.has(socket) || socket.closed) return;
    lingering.add(socket);
    socket.end();
    // Node's parser lets go of a socket that others listen to. It would keep all requests that still come, for ever.
    socket.removeAllListeners('data');
    socket.on('data', () => undefined);
    socket.resume();
    const deadline = setTimeout(() => socket.destroy(), currentLimit);
    socket.once('close', () => {
      clearTimeout(deadline);
      lingering.delete(socket);
    });
  };

  server.on('connection', (socket: Socket) => {
    // Node calls this when the last response was written.
    socket.destroySoon = () => linger(socket);
  });
  server.on(STOP_LINGERING_EVENT, () => {
    currentLimit = Math.min(limit, STOPPING_LIMIT_MS);
    for (const socket of lingering) socket.destroy();
  });
}
