import type { Socket } from 'node:net';

/** How long a client may pause before a connection that says nothing more is destroyed. */
const LINGER_IDLE_MS = 2000;

/**
 * Lets a client have the last response of its connection before the connection is destroyed.
 *
 * @param socket a new connection
 */
export function lingerAtEnd(socket: Socket): void {
  // Node calls this when the last response was written.
  socket.destroySoon = () => linger(socket);
}

/**
 * Closes this side of a connection, and reads on until the client has closed the other. A connection that is destroyed
 * while data of its client is unread is reset, and a reset can destroy the response on its way (RFC 9112 section 9.6).
 */
export function linger(socket: Socket): void {
  socket.end();
  socket.resume();
  socket.setTimeout(LINGER_IDLE_MS, () => socket.destroy());
}
