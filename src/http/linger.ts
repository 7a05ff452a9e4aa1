// For clients that send their whole body before they read, as most libraries do.

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { discardInput } from './discard-input.js';
import { whenClosed } from './when-closed.js';

/**
 * Keeps a connection open until its client has read the last response. Destroying a connection with unread data resets it,
 * and the client may lose the response (RFC 9112 section 9.6). Instead, this side is closed, and data that arrives is
 * discarded until the client closes its side.
 *
 * @param limit how long a client may take to close its side, in milliseconds, whatever it sends
 */
export function lingerAtEnd(server: Server, limit: number): void {
  server.on('connection', (socket: Socket) => {
    // Node calls this method after it has written the last response.
    socket.destroySoon = () => {
      socket.end();
      discardInput(socket);
      const deadline = setTimeout(() => socket.destroy(), limit);
      whenClosed(socket, () => clearTimeout(deadline));
    };
  });
}
