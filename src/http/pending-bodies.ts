// For the clients of an overloaded service that sends large plants: it refuses some instead of running out of memory.

import { Inject, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { connectionClosed, overloaded } from '../errors/service-error.js';
import { whenClosed } from './when-closed.js';

/** A plant has about 100 bytes, so that only much larger ones than usual are refused. */
const BYTES_PER_REQUEST = 8192;

/** With a large `BODY_LIMIT`, this many of the largest bodies may be in flight. */
const LARGEST_BODIES = 4;

/**
 * Takes place for more bytes of one body.
 *
 * @throws ServiceError overloaded when the bodies in flight would be too large together; connectionClosed
 */
export type Take = (bytes: number) => void;

/** Limits the bytes of all bodies in flight, because a limit of the requests alone would allow 100 MB by default. */
@Injectable()
export class PendingBodies {
  /** The most bytes of one body. */
  readonly limit: number;
  /** The most bytes of all bodies in flight. */
  readonly total: number;
  private bytes = 0;

  constructor(@Inject(CONFIG) { http }: Config, registry: Registry) {
    this.limit = http.bodyLimit;
    this.total = Math.max(
      http.maxPendingRequests * BYTES_PER_REQUEST,
      http.bodyLimit * LARGEST_BODIES,
    );
    const gauge: Gauge = new Gauge({
      name: 'plant_store_pending_body_bytes',
      help: 'Bytes of the bodies of requests in flight.',
      registers: [registry],
      collect: () => gauge.set(this.bytes),
    });
  }

  /** @returns a function that takes place for the body of a request, until its response is closed */
  open(response: Response): Take {
    let taken = 0;
    whenClosed(response, () => (this.bytes -= taken));
    return (bytes) => {
      // What is taken later would never be given back.
      if (response.closed) throw connectionClosed();
      if (this.bytes + bytes > this.total) throw overloaded();
      taken += bytes;
      this.bytes += bytes;
    };
  }
}
