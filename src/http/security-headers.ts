// The header fields of Swagger UI, into which people write their tokens.

import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * A middleware that sets the header fields with which a browser shows the page safely.
 *
 * @param baseUrl the address that requests from the page go to, if it is not the page's own
 */
export function securityHeaders(baseUrl: string | undefined): RequestHandler {
  return helmet({
    // Only the files of the page: an injected script could read the token.
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        // The style sheet contains its icons as data: URLs.
        imgSrc: ["'self'", 'data:'],
        connectSrc: ["'self'", ...(baseUrl === undefined ? [] : [sourceOf(baseUrl)])],
        baseUri: ["'none'"],
        formAction: ["'none'"],
        frameAncestors: ["'none'"],
      },
    },
    xFrameOptions: { action: 'deny' },
    // The service does not know whether a proxy in front of it uses TLS.
    strictTransportSecurity: false,
  });
}

/** The origin; for an IPv6 address, which a policy cannot contain, every address with the same scheme. */
function sourceOf(url: string): string {
  const { hostname, origin, protocol } = new URL(url);
  return hostname.startsWith('[') ? protocol : origin;
}
