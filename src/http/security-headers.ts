import { createHash } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import helmet from 'helmet';

/** A middleware that keeps browsers from taking a response for something else than its Content-Type says. */
export function noSniff(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  next();
}

/**
 * The header fields that a browser needs to show Swagger UI in safety.
 *
 * @param baseUrl the address that try-it-out calls, where it is not the page's own
 */
export function securityHeaders(baseUrl: string | undefined): RequestHandler {
  const otherHeaders = helmet({
    // Added below: it depends on the page.
    contentSecurityPolicy: false,
    xFrameOptions: { action: 'deny' },
    // The service does not know whether a proxy speaks TLS for it.
    strictTransportSecurity: false,
  });
  return (request: Request, response: Response, next: NextFunction) => {
    const allowStylesOf = (html: string) =>
      response.setHeader('Content-Security-Policy', contentSecurityPolicy(baseUrl, html));
    allowStylesOf('');
    const send = response.send.bind(response);
    // The page is known when it is sent: the hashes of its inline styles change with the version of the library.
    response.send = (body?: unknown) => {
      if (typeof body === 'string') allowStylesOf(body);
      return send(body);
    };
    otherHeaders(request, response, next);
  };
}

/** Allows what the page loads, and nothing else: a script that somebody smuggles in could read the token. */
function contentSecurityPolicy(baseUrl: string | undefined, html: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...inlineStyles(html)].join(' '),
    // The style sheet holds its icons as data: addresses.
    "img-src 'self' data:",
    ["connect-src 'self'", ...(baseUrl === undefined ? [] : [sourceOf(baseUrl)])].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Allows the `<style>` elements and `style` attributes of the page by their hashes; attributes need the keyword, too. */
function inlineStyles(html: string): string[] {
  const styles = [...html.matchAll(/<style>(.*?)<\/style>/gs), ...html.matchAll(/ style="(.*?)"/g)];
  const hashes = styles.map(([, style]) => createHash('sha256').update(style!).digest('base64'));
  return hashes.length === 0 ? [] : ["'unsafe-hashes'", ...hashes.map((it) => `'sha256-${it}'`)];
}

/** The origin, or all of its scheme where the host is an IPv6 address, which a policy cannot name. */
function sourceOf(url: string): string {
  const { hostname, origin, protocol } = new URL(url);
  return hostname.startsWith('[') ? protocol : origin;
}
