import type { ArgumentsHost } from '@nestjs/common';
import type { Request, Response } from 'express';

/** The request that is handled. Not by `switchToHttp()`, which makes four objects for every question. */
export function requestOf(context: ArgumentsHost): Request {
  return context.getArgByIndex<Request>(0);
}

/** The response to the request that is handled. */
export function responseOf(context: ArgumentsHost): Response {
  return context.getArgByIndex<Response>(1);
}
