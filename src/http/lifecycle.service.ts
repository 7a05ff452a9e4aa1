// The requests in flight, which a service that stops still handles or refuses.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { sendErrorNow } from '../errors/send-error.js';
import { shuttingDown } from '../errors/errors.js';
import { whenClosed } from './when-closed.js';

/** A client that pipelines more requests, and reads no responses, could fill the memory. */
const MAX_PIPELINED = 16;

/**
 * - draining: the service still handles requests, and closes each connection after the response.
 * - stopping: the database is about to close, so every request is refused.
 */
type Phase = 'serving' | 'draining' | 'stopping';

/** Knows the requests in flight, and refuses them and later ones when the service stops. */
@Injectable()
export class LifecycleService {
  private phase: Phase = 'serving';
  /** The responses of every connection, in the order of their requests; those that are closed leave with the next request. */
  private readonly responses = new Map<Socket, ServerResponse[]>();

  /** A middleware that registers a request, or refuses it when the service is stopping. */
  readonly enter = (
    { socket }: IncomingMessage,
    response: ServerResponse,
    next: (error?: unknown) => void,
  ): void => {
    if (this.phase !== 'serving') response.setHeader('Connection', 'close');
    if (this.phase === 'stopping') {
      next(shuttingDown());
      return;
    }
    let responses = this.responses.get(socket);
    if (responses === undefined) {
      const opened: ServerResponse[] = [];
      responses = opened;
      this.responses.set(socket, opened);
      whenClosed(socket, () => {
        this.responses.delete(socket);
        // After CONNECT, Node does not close the responses that wait behind the first one.
        for (const waiting of opened) waiting.destroy();
      });
    }
    // Node sends and closes them in order.
    while (responses[0]?.closed === true) responses.shift();
    responses.push(response);
    if (responses.length > MAX_PIPELINED) socket.destroy();
    else next();
  };

  /** @returns the response to the latest request of a connection; undefined before its first one */
  latestOf(socket: Socket): ServerResponse | undefined {
    return this.responses.get(socket)?.at(-1);
  }

  /** Closes every connection after its requests in flight, so that clients send their next requests elsewhere. */
  drain(): void {
    this.phase = 'draining';
    for (const responses of this.responses.values()) {
      const latest = responses.at(-1)!;
      if (!latest.headersSent) latest.setHeader('Connection', 'close');
    }
  }

  /** Refuses the requests in flight and all later ones. */
  stop(): void {
    this.phase = 'stopping';
    for (const response of [...this.responses.values()].flat()) {
      if (!response.headersSent) sendErrorNow(response, shuttingDown());
    }
  }

  /** @throws ServiceError shuttingDown when the service is draining or stopping */
  refuseUnlessServing(): void {
    if (this.phase !== 'serving') throw shuttingDown();
  }
}
