// Turns what a route, a guard or a middleware throws into a response.

import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { badRequest, internal } from './errors.js';
import { ServiceError, ConnectionClosed } from './service-error.js';
import { sendError } from './send-error.js';

@Catch()
export class ErrorFilter implements ExceptionFilter {
  catch(thrown: unknown, host: ArgumentsHost): void {
    if (thrown instanceof ConnectionClosed) return;
    const http = host.switchToHttp();
    sendError(http.getRequest<Request>(), http.getResponse<Response>(), toServiceError(thrown));
  }
}

/** The error to send for anything that was thrown. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  return isClientError(thrown)
    ? badRequest('The request could not be understood.')
    : internal(thrown);
}

/** Whether the error has a 4xx status, set by Nest or by Express (package http-errors). */
function isClientError(thrown: unknown): boolean {
  const status = thrown instanceof HttpException ? thrown.getStatus() : exposedStatus(thrown);
  return typeof status === 'number' && status >= 400 && status < 500;
}

/**
 * The `status` of an error of http-errors. An error of an HTTP client also has a `status`, but not `expose`, which only
 * http-errors sets.
 */
function exposedStatus(thrown: unknown): unknown {
  return thrown instanceof Error && 'expose' in thrown && thrown.expose && 'status' in thrown
    ? thrown.status
    : undefined;
}
