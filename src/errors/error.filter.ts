import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorCode } from './error-codes.js';
import { sendError } from './send-error.js';
import { internal, overloaded, ServiceError } from './service-error.js';

/** Turns every error that is thrown in a route, a guard or a middleware into a response. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendError(http.getRequest<Request>(), http.getResponse<Response>(), toServiceError(thrown));
  }
}

/** The error to send for anything that was thrown. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) return thrown;
  if (isBadRequest(thrown) && !isFileError(thrown)) {
    return new ServiceError(ErrorCode.badRequest, 'The request could not be understood.');
  }
  return isOutOfDescriptors(thrown) ? overloaded() : internal(thrown);
}

/** A file cannot be opened now, because this process or the whole system has too many open. */
function isOutOfDescriptors(thrown: unknown): boolean {
  return ['EMFILE', 'ENFILE'].includes((thrown as NodeJS.ErrnoException | undefined)?.code ?? '');
}

/** A file of the page is missing or closed: a fault of ours, although Express gives it the status 404. */
function isFileError(thrown: unknown): boolean {
  const error = thrown instanceof HttpException ? thrown.cause : thrown;
  return error instanceof Error && 'syscall' in error;
}

/** Whether the error has a 4xx status, set by Nest or by Express (package http-errors). */
function isBadRequest(thrown: unknown): boolean {
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
