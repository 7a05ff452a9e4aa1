import type { Socket } from 'node:net';

/** Discards everything that still arrives. Node would parse and keep every request; it undoes a pause. */
export function discardInput(socket: Socket): void {
  socket.removeAllListeners('data');
  socket.on('data', () => undefined);
  socket.resume();
}
