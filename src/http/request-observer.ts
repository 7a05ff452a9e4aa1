// Logs, measures and traces every request: operators see what each client got.

import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Inject, Injectable } from '@nestjs/common';
import { SpanStatusCode } from '@opentelemetry/api';
import type { NextFunction, Request, Response } from 'express';
import type { Logger } from 'pino';
import { Counter, Histogram, Registry } from 'prom-client';
import {
  RowsUnavailableError,
  databaseUnavailable,
  internal,
  issuerUnavailable,
  overloaded,
  tokenInvalid,
} from '../errors/errors.js';
import { type ServiceError, reasonOf } from '../errors/service-error.js';
import { sentError } from '../errors/send-error.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import { startRequestSpan, withRequestSpan } from '../tracing/tracing.js';
import { METHODS } from './methods.js';
import { whenClosed } from './when-closed.js';

/** From a millisecond to the default of REQUEST_TIMEOUT_MS. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const UNMATCHED = 'unmatched';

/** A longer path would fill the terminal. */
const MAX_PATH_LENGTH = 100;

const MAYBE_TOKEN = /plantstore_.*|[^/]{37,}/gi;

/** An id of any other form could break a log entry or fill a disk, or be a token. */
const WELL_FORMED_ID = /^(?!plantstore_)[\w.:-]{1,128}$/i;

/** Logs, measures and traces every request once, when its response is closed. */
@Injectable()
export class RequestObserver {
  private readonly durations: Histogram<'route' | 'method' | 'status' | 'operation'>;
  private readonly drops: Counter;
  /** The routes of which a request could not use the database, since one of them could. */
  private readonly unavailableRoutes = new Set<string>();

  constructor(
    @Inject(PINO_LOGGER) private readonly logger: Logger,
    registry: Registry,
  ) {
    this.durations = new Histogram({
      name: 'plant_store_http_request_duration_seconds',
      help: 'Time from the header of a request to the end of its response. Without an operation: other routes, and what is refused before its route is known.',
      labelNames: ['route', 'method', 'status', 'operation'],
      buckets: BUCKETS_SECONDS,
      registers: [registry],
    });
    this.drops = new Counter({
      name: 'plant_store_connections_dropped_total',
      help: 'Connections that were closed because MAX_CONNECTIONS were open.',
      registers: [registry],
    });
  }

  /** A listener for connections that Node closes, because there are too many. */
  readonly countDrop = (): void => this.drops.inc();

  /**
   * Logs a response to what is no request.
   *
   * @returns the id for its header
   */
  logUnparsed(error: ServiceError): string {
    const requestId = randomUUID();
    const entry = { requestId, route: 'unparsed', status: error.status, error: error.code };
    this.logger.info(entry, 'request');
    return requestId;
  }

  /** The first middleware: sets the header fields of every response. `next` runs in the trace of the request. */
  readonly observe = (request: Request, response: Response, next: NextFunction): void => {
    const startedAt = performance.now();
    const requestId = requestIdOf(request);
    response.setHeader('X-Request-Id', requestId);
    response.setHeader('X-Content-Type-Options', 'nosniff');
    const span = startRequestSpan(request);

    whenClosed(response, () => {
      const milliseconds = performance.now() - startedAt;
      const route = (request.route as { path: string } | undefined)?.path ?? UNMATCHED;
      const error = sentError(response);
      // 499: the client closed the connection before the response began.
      const status = response.headersSent ? response.statusCode : 499;
      // Clients must not be able to create labels.
      const method = METHODS.includes(request.method) ? request.method : 'other';
      // Empty for requests to other routes, and for those that are refused before their route is known.
      const operation = (response.locals['operation'] as string | undefined) ?? '';
      this.durations.observe({ route, method, status, operation }, milliseconds / 1000);
      const entry = {
        requestId,
        method: request.method,
        route,
        // A target such as `GET http://` has no path.
        path: route === UNMATCHED ? shortened(request.path ?? request.url) : undefined,
        status,
        duration: Math.round(milliseconds * 10) / 10,
        error: error?.code,
        token: (request.user as { name: string } | undefined)?.name,
        traceId: span?.spanContext().traceId,
      };
      this.log(entry, error);
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

  private log(entry: RequestEntry, error: ServiceError | undefined): void {
    switch (error?.code) {
      case databaseUnavailable.code:
      case issuerUnavailable.code:
        // The messages alone: a stack in each entry of an outage would fill the disk.
        this.logger.error({ ...entry, cause: reasonOf(error) }, 'request');
        // A locked row is no outage of the database.
        if (error.code === databaseUnavailable.code && !(error instanceof RowsUnavailableError)) {
          this.unavailableRoutes.add(entry.route);
        }
        break;
      case tokenInvalid.code:
        this.logger.info({ ...entry, cause: error.cause }, 'request');
        break;
      case overloaded.code:
        this.logger.warn(entry, 'request');
        break;
      case internal.code:
        this.logger.error({ ...entry, err: error.cause }, error.message);
        break;
      default:
        this.logger.info(entry, 'request');
        if (entry.status === 200 && this.unavailableRoutes.has(entry.route)) {
          this.unavailableRoutes.clear();
          this.logger.info('The database is available again.');
        }
    }
  }
}

interface RequestEntry {
  readonly route: string;
  readonly status: number;
}

/** A token in a path must not be shown. A part of more than 36 characters, which a UUID has, may be a JWT. */
function shortened(path: string): string {
  const text = path.replace(MAYBE_TOKEN, '…');
  return text.length > MAX_PATH_LENGTH ? `${text.slice(0, MAX_PATH_LENGTH)}…` : text;
}

/** The id that the client or a proxy sent in `X-Request-Id`, or a new one. */
function requestIdOf({ headers }: IncomingMessage): string {
  const id = headers['x-request-id'];
  return typeof id === 'string' && WELL_FORMED_ID.test(id) ? id : randomUUID();
}
