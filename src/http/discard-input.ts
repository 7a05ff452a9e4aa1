// For clients that still send when they get their last response.

import type { Socket } from 'node:net';

/** Discards all later data. A pause is not enough: Node would resume the socket, and parse and keep more requests. */
export function discardInput(socket: Socket): void {
  socket.removeAllListeners('data');
  socket.on('data', () => undefined);
  // Until now, Node's parser has read for the stream, which still waits for it: if the parser was paused, nobody would read.
  socket.push('');
  socket.resume();
}
