import type { Application } from 'express';
import { ErrorCode } from '../errors/error-codes.js';
import { MethodNotAllowedError, ServiceError } from '../errors/service-error.js';

type Router = Application['router'];

/** What the router asks of every layer, and Express's types leave out. */
type MatchingLayer = Router['stack'][number] & { match(path: string): boolean };

/** Why no route took a request: its path is unknown, or known with other methods only. */
export function unmatchedRoute(router: Router, method: string, path: string): ServiceError {
  const allowedMethods = methodsOf(router, path);
  return allowedMethods.length === 0
    ? new ServiceError(
        ErrorCode.pathNotFound,
        'There is nothing at this path; /docs describes the service.',
      )
    : new MethodNotAllowedError(method, path, allowedMethods);
}

function methodsOf(router: Router, path: string): string[] {
  const methods = router.stack
    .filter((layer) => layer.route !== undefined && (layer as MatchingLayer).match(path))
    .flatMap((layer) => layer.route!.stack.map((handler) => handler.method.toUpperCase()));
  // Express answers HEAD with the route of GET.
  return [...new Set(methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))];
}
