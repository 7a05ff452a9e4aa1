import type { NextFunction, Request, RequestHandler, Response } from 'express';
import { shuttingDown, type LifecycleService } from './lifecycle.service.js';

/** Sends clients away from a process that is about to stop, without losing a request of theirs. */
export function lifecycleMiddleware(lifecycle: LifecycleService): RequestHandler {
  return (_request: Request, response: Response, next: NextFunction) => {
    if (lifecycle.phase === 'stopping') {
      next(shuttingDown());
      return;
    }
    if (lifecycle.phase === 'draining') {
      response.setHeader('Connection', 'close');
    }
    next();
  };
}
