// For the clients of a service that stops, which keep their connections: they are told to send their next request elsewhere.

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { sendError } from '../errors/send-error.js';
import { shuttingDown } from '../errors/service-error.js';
import { whenClosed } from './when-closed.js';

/**
 * - draining: the service still handles requests, and closes each connection after the response.
 * - stopping: the database is about to close, so every request is refused.
 */
type Phase = 'serving' | 'draining' | 'stopping';

/** Knows the requests in flight, and refuses them and later ones when the service stops. */
@Injectable()
export class LifecycleService {
  private phase: Phase = 'serving';
  /**
   * The latest response of every connection, which has at most one in flight (see pipelining.ts). A Set of the responses
   * in flight would change with every request, and the old tables of the Set would keep finished responses in memory:
   * docs/performance.md has the cost.
   */
  private readonly latest = new Map<Socket, ServerResponse>();

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
    const isNew = !this.latest.has(socket);
    this.latest.set(socket, response);
    if (isNew) whenClosed(socket, () => this.latest.delete(socket));
    next();
  };

  /** Closes every connection after the response in flight, so that clients send their next requests elsewhere. */
  drain(): void {
    this.phase = 'draining';
    for (const response of this.latest.values()) {
      if (!response.headersSent) response.setHeader('Connection', 'close');
    }
  }

  /** Refuses the requests in flight and all later ones. */
  stop(): void {
    this.phase = 'stopping';
    for (const response of this.latest.values()) {
      if (!response.headersSent) sendError(response.req, response, shuttingDown());
    }
  }

  /** @throws ServiceError shuttingDown when the service is draining or stopping */
  refuseUnlessServing(): void {
    if (this.phase !== 'serving') throw shuttingDown();
  }
}
