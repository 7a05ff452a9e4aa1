import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule, type OpenAPIObject } from '@nestjs/swagger';
import type { Application, NextFunction, Request, Response } from 'express';
import { allowAllOrigins } from '../http/cors.js';
import { securityHeaders } from '../http/security-headers.js';
import { buildDocument, serversAt, type ApiDescription } from './document.js';

const PAGE = fileURLToPath(new URL('page', import.meta.url));
const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** How long a browser may keep a file of the page: after an upgrade, it shows the old page for at most an hour. */
const MAX_AGE_SECONDS = 3600;

/** The files of the page; no other file of the folders is served. */
const FILES: readonly (readonly [path: string, folder: string, file: string])[] = [
  ['/docs', PAGE, 'index.html'],
  ['/docs/page.css', PAGE, 'page.css'],
  ['/docs/page.js', PAGE, 'page.js'],
  ['/docs/icon.svg', PAGE, 'icon.svg'],
  ['/docs/swagger-ui.css', SWAGGER_UI, 'swagger-ui.css'],
  ['/docs/swagger-ui-bundle.js', SWAGGER_UI, 'swagger-ui-bundle.js'],
];

/** Serves the OpenAPI document at /openapi.json and /openapi.yaml, and Swagger UI at /docs, without a token. */
export function serveDocument(
  app: NestExpressApplication,
  api: ApiDescription,
  baseUrl: string | undefined,
): void {
  const express = app.getHttpAdapter().getInstance() as Application;
  express.use('/docs', securityHeaders(baseUrl));
  // The links on the page are relative to /docs, and would be wrong at /docs/.
  express.get('/docs/', (_request: Request, response: Response) => {
    response.redirect(308, '../docs');
  });
  for (const [path, folder, file] of FILES) {
    // Read once: a file that is opened for each response takes a descriptor for as long as its client does not read.
    const content = readFileSync(join(folder, file));
    const etag = `"${hash('sha1', content)}"`;
    express.get(path, (_request: Request, response: Response) => {
      response.type(extname(file)).set('ETag', etag);
      response.set('Cache-Control', `public, max-age=${MAX_AGE_SECONDS}`);
      response.send(content);
    });
  }
  // The page gets a relative address, because only its browser knows the scheme and the path prefix of a proxy.
  // Built at the first request for it: a start is shorter without it.
  let document: OpenAPIObject | undefined;
  const documentOf = () => (document ??= buildDocument(app, api, baseUrl ?? '..'));
  express.get('/docs/openapi.json', (_request: Request, response: Response) => {
    response.json(documentOf());
  });
  SwaggerModule.setup('docs', app, documentOf, {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    // Linters and programs that read the OpenAPI document from a file need an absolute address.
    patchDocumentOnRequest: (request, response, shared) => {
      // A cache must not give one client the address that another one used.
      (response as Response).set('Cache-Control', 'no-store');
      allowAllOrigins(response as Response);
      return { ...shared, servers: serversAt(baseUrl ?? addressOf(request as Request)) };
    },
    // The page of the library has no viewport for phones, and inline styles.
    ui: false,
  });
}

/**
 * The address of the request, without a path prefix, which only a proxy knows. X-Forwarded-Host is not used: proxies pass
 * it on from clients.
 *
 * @returns a relative address if the request has no usable Host
 */
function addressOf({ headers, secure }: Request): string {
  const address = `${secure ? 'https' : 'http'}://${headers.host ?? ''}`;
  return URL.canParse(address) ? new URL(address).origin : '.';
}

/**
 * Redirects browsers from / to /docs. A middleware and not a route, because / exists only for browsers: with a route,
 * another method would get a 405 with `Allow: GET` instead of a 404.
 */
export function redirectBrowser(request: Request, response: Response, next: NextFunction): void {
  if (request.path !== '/' || !['GET', 'HEAD'].includes(request.method)) return next();
  response.vary('Accept');
  // `accepts` alone is also true for */*, the default of clients that are not browsers.
  const isBrowser = /\btext\/html\b/i.test(request.headers.accept ?? '') && request.accepts('html');
  // A relative address keeps the path prefix of a proxy.
  if (isBrowser) response.redirect(302, 'docs');
  else next();
}
