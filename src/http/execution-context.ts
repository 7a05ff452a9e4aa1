import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';

/** The current request; `switchToHttp()` would create four objects for each call. */
export function requestOf(context: ArgumentsHost): Request {
  return context.getArgByIndex<Request>(0);
}

/** The response to the current request. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
