// Limits the requests in flight: the clients of an overloaded service get 503 at once, and can try again.

import { Inject, Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Response } from 'express';
import { Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { overloaded } from '../errors/errors.js';
import { ConnectionClosed } from '../errors/service-error.js';
import { whenClosed } from './when-closed.js';

/** Not in the guard, because Nest creates a guard for each module that uses it. */
@Injectable()
export class PendingRequests {
  private count = 0;

  constructor(
    @Inject(CONFIG) private readonly config: Config,
    registry: Registry,
  ) {
    const gauge: Gauge = new Gauge({
      name: 'plant_store_pending_requests',
      help: 'Requests in flight to operations: those between the check of their token and their response.',
      registers: [registry],
      collect: () => gauge.set(this.count),
    });
  }

  /** @throws ServiceError overloaded */
  add(response: Response): void {
    if (this.count >= this.config.http.maxPendingRequests) throw overloaded();
    this.count++;
    whenClosed(response, () => this.count--);
  }
}

/**
 * Refuses a request, before its body is read, when too many are in flight. In a queue without a limit, every client would wait
 * until its timeout.
 */
@Injectable()
export class AdmissionGuard implements CanActivate {
  constructor(private readonly pending: PendingRequests) {}

  canActivate(context: ExecutionContext): boolean {
    const response = context.switchToHttp().getResponse<Response>();
    // The client gave up while its token was looked up, as many do at the end of an outage: nobody reads the response.
    if (response.closed) throw new ConnectionClosed();
    this.pending.add(response);
    return true;
  }
}
