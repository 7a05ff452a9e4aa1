import { createHash } from 'node:crypto';
import type { NextFunction, Request, RequestHandler, Response } from 'express';
import helmet, { xContentTypeOptions } from 'helmet';

/** A middleware that makes browsers trust the Content-Type of a response. */
export const noSniff: RequestHandler = xContentTypeOptions();

/**
 * The header fields with which a browser shows Swagger UI safely.
 *
 * @param baseUrl the address that requests from the page go to, if it is not the page's own
 */
export function securityHeaders(baseUrl: string | undefined): RequestHandler {
  const otherHeaders = helmet({
    // Set below, because the policy depends on the page.
    contentSecurityPolicy: false,
    xFrameOptions: { action: 'deny' },
    // The service does not know whether a proxy in front of it uses TLS.
    strictTransportSecurity: false,
  });
  return (request: Request, response: Response, next: NextFunction) => {
    const allowStylesOf = (html: string) =>
      response.setHeader('Content-Security-Policy', contentSecurityPolicy(baseUrl, html));
    allowStylesOf('');
    const send = response.send.bind(response);
    // The inline styles are known only when the page is sent, because the library generates them.
    response.send = (body?: unknown) => {
      if (typeof body === 'string') allowStylesOf(body);
      return send(body);
    };
    otherHeaders(request, response, next);
  };
}

/** Allows only the files of the page: an injected script could read the token. */
function contentSecurityPolicy(baseUrl: string | undefined, html: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...inlineStyles(html)].join(' '),
    // The style sheet contains its icons as data: URLs.
    "img-src 'self' data:",
    ["connect-src 'self'", ...(baseUrl === undefined ? [] : [sourceOf(baseUrl)])].join(' '),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

/** Hashes of the `<style>` elements and `style` attributes; the attributes also need `'unsafe-hashes'`. */
function inlineStyles(html: string): string[] {
  const styles = [...html.matchAll(/<style>(.*?)<\/style>/gs), ...html.matchAll(/ style="(.*?)"/g)];
  const hashes = styles.map(([, style]) => createHash('sha256').update(style!).digest('base64'));
  return hashes.length === 0 ? [] : ["'unsafe-hashes'", ...hashes.map((it) => `'sha256-${it}'`)];
}

/** The origin; for an IPv6 address, which a policy cannot contain, every address with the same scheme. */
function sourceOf(url: string): string {
  const { hostname, origin, protocol } = new URL(url);
  return hostname.startsWith('[') ? protocol : origin;
}
