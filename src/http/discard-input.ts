import type { Socket } from 'node:net';

/** Discards everything that still arrives. After a pause instead, Node would resume, and parse and keep every request. */
export function discardInput(socket: Socket): void {
  socket.removeAllListeners('data');
  socket.on('data', () => undefined);
  socket.resume();
}
