import { Inject, Injectable } from '@nestjs/common';
import { SpanStatusCode } from '@opentelemetry/api';
import type { NextFunction, Request, Response } from 'express';
import type { Server } from 'node:http';
import { Counter, Histogram, Registry } from 'prom-client';
import { ErrorCode, statusOf } from '../errors/error-codes.js';
import { sentError } from '../errors/send-error.js';
import type { ServiceError } from '../errors/service-error.js';
import type { Logger } from 'pino';
import { REQUEST_LOGGER } from '../logging/logging.module.js';
import { startRequestSpan, withRequestSpan } from '../tracing/tracing.js';
import { requestIdOf } from './request-id.js';
import { UNPARSED_EVENT } from './unparsed-event.js';
import { whenClosed } from './when-closed.js';

/** From a millisecond to the longest a request may take. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Labels must not grow with what clients think of. */
const KNOWN_METHODS = new Set(['GET', 'HEAD', 'POST']);
const UNMATCHED = 'unmatched';
const UNPARSED = 'unparsed';

/** Logs, measures and traces every request, once, when it is over. */
@Injectable()
export class RequestObserver {
  private readonly durations: Histogram<'route' | 'method' | 'status'>;
  private readonly drops: Counter;

  constructor(
    @Inject(REQUEST_LOGGER) private readonly logger: Logger,
    registry: Registry,
  ) {
    this.durations = new Histogram({
      name: 'plant_store_http_request_duration_seconds',
      help: 'Time from the header of a request to the end of its response.',
      labelNames: ['route', 'method', 'status'],
      buckets: BUCKETS_SECONDS,
      registers: [registry],
    });
    this.drops = new Counter({
      name: 'plant_store_connections_dropped_total',
      help: 'Connections that were closed because there were too many.',
      registers: [registry],
    });
  }

  /** Observes what never becomes a request: what the HTTP parser refused, and connections beyond the limit. */
  watch(server: Server): void {
    server.on(UNPARSED_EVENT, (error: ServiceError) => this.observeUnparsed(error));
    server.on('drop', () => this.drops.inc());
  }

  private observeUnparsed(error: ServiceError): void {
    const status = statusOf(error.code);
    this.durations.observe({ route: UNPARSED, method: 'other', status }, 0);
    this.logger.info({ route: UNPARSED, status, error: error.code }, 'request');
  }

  /** A middleware, the first of all: `next` runs within the trace of the request. */
  readonly observe = (request: Request, response: Response, next: NextFunction): void => {
    const startedAt = performance.now();
    const requestId = requestIdOf(request.headers['x-request-id']);
    response.setHeader('X-Request-Id', requestId);
    const span = startRequestSpan(request);

    whenClosed(response, () => {
      const milliseconds = performance.now() - startedAt;
      const route = (request.route as { path: string } | undefined)?.path ?? UNMATCHED;
      const error = sentError(response);
      // A client that went away before its response began leaves no status.
      const status = response.headersSent ? response.statusCode : 499;
      this.durations.observe(
        { route, method: KNOWN_METHODS.has(request.method) ? request.method : 'other', status },
        milliseconds / 1000,
      );
      const entry = {
        requestId,
        method: request.method,
        route,
        status,
        duration: Math.round(milliseconds * 10) / 10,
        error: error?.code,
        token: (request.user as { name: string } | undefined)?.name,
        traceId: span?.spanContext().traceId,
      };
      this.log(entry, status, error);
      if (span !== undefined) {
        span.updateName(`${request.method} ${route}`);
        span.setAttributes({
          'http.request.method': request.method,
          'http.route': route,
          'http.response.status_code': status,
        });
        if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
        span.end();
      }
    });
    withRequestSpan(span, next);
  };

  /** A 5xx that has a cause to be found is an error. Of 50301 there are many at once, and 50302 is no fault. */
  private log(entry: object, status: number, error: ServiceError | undefined): void {
    if (status < 500 || error?.code === ErrorCode.shuttingDown) {
      this.logger.info(entry, 'request');
    } else if (error?.code === ErrorCode.overloaded) {
      this.logger.warn(entry, error.message);
    } else {
      this.logger.error({ ...entry, err: error?.cause }, error?.message ?? 'request');
    }
  }
}
