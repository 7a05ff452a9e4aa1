import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Injectable } from '@nestjs/common';
import { sendError } from '../errors/send-error.js';
import { shuttingDown } from '../errors/service-error.js';
import { whenClosed } from './when-closed.js';

/**
 * Where the process stands between start and stop.
 *
 * - serving: all is well.
 * - draining: no new connections; every request that still arrives gets its response, and its connection closes.
 * - stopping: the database is about to go; what still arrives is refused.
 */
export type LifecyclePhase = 'serving' | 'draining' | 'stopping';

@Injectable()
export class LifecycleService {
  private phase: LifecyclePhase = 'serving';
  /**
   * The latest request of every connection; a connection has one in flight at most (see
   * pipelining.ts). Not a Set of those in flight: each time V8 makes room in a set that is added to and deleted
   * from all the time, the old table keeps what was in it, and is itself kept until the next full garbage collection.
   */
  private readonly latest = new Map<Socket, ServerResponse>();

  /** A middleware that takes note of a request, and refuses it when it came too late. */
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

  /** Sends clients away without losing a request: each response tells its client to come back elsewhere. */
  drain(): void {
    this.phase = 'draining';
    for (const response of this.latest.values()) {
      if (!response.headersSent) response.setHeader('Connection', 'close');
    }
  }

  /** Refuses what is still in flight, and everything that comes. */
  stop(): void {
    this.phase = 'stopping';
    for (const response of this.latest.values()) {
      if (!response.headersSent) sendError(response.req, response, shuttingDown());
    }
  }

  /** @throws ServiceError shuttingDown, so that a load balancer sends the next request elsewhere */
  refuseUnlessServing(): void {
    if (this.phase !== 'serving') throw shuttingDown();
  }
}
