// For clients that send large plants to an overloaded service: some are refused, so that it does not run out of memory.

import { Inject, Injectable } from '@nestjs/common';
import type { Response } from 'express';
import { Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { connectionClosed, overloaded } from '../errors/service-error.js';
import { whenClosed } from './when-closed.js';

/** A plant usually has about 100 bytes, so clients that send such plants never reach this limit. */
const BYTES_PER_REQUEST = 16_384;

/** With a large `BODY_LIMIT`, this many of the largest bodies may be in flight. */
const LARGEST_BODIES = 4;

/**
 * Counts bytes of one body that have arrived.
 *
 * @throws ServiceError overloaded, and counts nothing, when all bodies in flight would have too many bytes; connectionClosed
 */
export type CountBytes = (bytes: number) => void;

/** Limits the bytes of all bodies in flight: a thousand of the largest by default are 66 MB, and are copied several times. */
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

  /**
   * @param bytes of a body that its client announced. They do not count before they arrive: otherwise, a few clients that announce
   *   large bodies and send nothing would keep all others out.
   * @throws ServiceError overloaded when the body would be refused later
   */
  check(bytes: number): void {
    if (this.bytes + bytes > this.total) throw overloaded();
  }

  /** @returns a function that counts bytes of the body of a request until its response is closed */
  open(response: Response): CountBytes {
    let counted = 0;
    whenClosed(response, () => (this.bytes -= counted));
    return (bytes) => {
      // When the response is closed, nothing subtracts these bytes again.
      if (response.closed) throw connectionClosed();
      this.check(bytes);
      counted += bytes;
      this.bytes += bytes;
    };
  }
}
