import type { RequestHandler } from 'express';
import helmet from 'helmet';

/** The header fields that a browser needs to show Swagger UI in safety. */
export function securityHeaders(): RequestHandler {
  return helmet({
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
}
