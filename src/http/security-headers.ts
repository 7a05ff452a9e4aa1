import type { NextFunction, Request, RequestHandler, Response } from 'express';
import helmet from 'helmet';

/**
 * Security header fields: all that a browser needs for Swagger UI, and for every other answer only the
 * one that concerns JSON.
 */
export function securityHeaders(): RequestHandler {
  const forPages = helmet({
    contentSecurityPolicy: {
      directives: {
        // Try-it-out calls `base_url`, which may be another origin.
        'connect-src': ["'self'", 'http:', 'https:'],
        // The service does not know whether a proxy speaks TLS for it.
        'upgrade-insecure-requests': null,
      },
    },
    strictTransportSecurity: false,
  });
  return (request: Request, response: Response, next: NextFunction) => {
    if (request.path.startsWith('/docs')) {
      forPages(request, response, next);
      return;
    }
    response.setHeader('X-Content-Type-Options', 'nosniff');
    next();
  };
}
