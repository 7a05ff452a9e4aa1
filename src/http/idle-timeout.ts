// For clients that hang or have lost their network.

import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { connectionOf } from './pipelining.js';

/**
 * Ends a connection whose client neither sends nor reads for the timeout of the server. A client that waits for its response
 * is not idle: each step of the service has a time limit of its own, after which the client gets an Error.
 */
export function endIdle(server: Server): void {
  // Without this listener, Node would close the connection in each of these cases.
  server.on('timeout', (socket: Socket) => {
    const response = connectionOf(socket)?.current;
    if (response?.headersSent === true) {
      // The client does not read the response, or has it and sends no other request.
      socket.destroy();
    } else if (response !== undefined && isWaitedFor(response)) {
      socket.setTimeout(server.timeout);
    } else {
      // As for a request that takes too long in all: the client gets an Error.
      const error = Object.assign(new Error(), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      server.emit('clientError', error, socket);
    }
  });
}

/** Whether the client has sent all that the service reads now. */
function isWaitedFor({ req }: ServerResponse): boolean {
  // Before the token is looked up, no body is read: its client cannot send, or waits for 100 Continue.
  return req.complete || req.readableFlowing !== true;
}
