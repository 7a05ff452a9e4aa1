import { Catch, HttpException, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Request, Response } from 'express';
import { ErrorCode } from './error-codes.js';
import { sendError } from './send-error.js';
import { ServiceError } from './service-error.js';

/** Where an error that was thrown behind the route becomes an HTTP response. */
@Catch()
export class ErrorFilter implements ExceptionFilter {
  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    sendError(http.getRequest<Request>(), http.getResponse<Response>(), toServiceError(thrown));
  }
}

/** What an error that was thrown anywhere means to the client. */
export function toServiceError(thrown: unknown): ServiceError {
  if (thrown instanceof ServiceError) {
    return thrown;
  }
  if (isBadRequest(thrown)) {
    return new ServiceError(ErrorCode.badRequest, 'The request could not be understood.');
  }
  return new ServiceError(
    ErrorCode.internal,
    'The service failed to handle this request. The fault is ours; trying again later is safe.',
    { cause: thrown },
  );
}

/** Nest, and Express with the package http-errors, mark so what the client got wrong. */
function isBadRequest(thrown: unknown): boolean {
  const status =
    thrown instanceof HttpException
      ? thrown.getStatus()
      : isHttpError(thrown) && thrown.expose && thrown.status;
  return typeof status === 'number' && status >= 400 && status < 500;
}

function isHttpError(thrown: unknown): thrown is { status: number; expose: boolean } {
  return thrown instanceof Error && 'status' in thrown && 'expose' in thrown;
}
