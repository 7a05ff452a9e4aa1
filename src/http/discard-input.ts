// For clients that still send when they get their last response.

import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { countBodyBytes } from './body-garbage.js';

/** Properties of Node's own that its types lack. */
interface ParsedSocket extends Socket {
  /** Parses the requests of the connection; null when it is closed, and undefined if it does not speak HTTP. */
  readonly parser?: { onIncoming: (request: IncomingMessage) => number } | null;
}

/** Discards all later data. A pause is not enough: Node would resume the socket, and parse and keep more requests. */
export function discardInput(socket: ParsedSocket): void {
  socket.removeAllListeners('data');
  socket.on('data', (data: Buffer) => countBodyBytes(data.length));
  // The data that Node parses now may contain thousands of further requests, and Node would keep them until the connection closes.
  if (socket.parser) socket.parser.onIncoming = ignore;
  // The stream believes that a read is pending, because Node's parser read in its place. An empty push ends that read; otherwise,
  // `resume` would start none.
  socket.push('');
  socket.resume();
}

/** @returns what tells the parser that the request has a body as its header says */
function ignore(request: IncomingMessage & { upgrade?: boolean }): number {
  // Otherwise, Node would close the connection at once, before its last response.
  request.upgrade = false;
  return 0;
}
