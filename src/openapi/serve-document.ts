import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import type { Application, NextFunction, Request, Response } from 'express';
import { securityHeaders } from '../http/security-headers.js';
import { buildDocument } from './document.js';

/** Relative to the document: clients use the address from which they read it, including a path prefix of a proxy. */
const RELATIVE_BASE_URL = '.';

/**
 * Serves the document at /openapi.json and /openapi.yaml, and Swagger UI at /docs, without a token. Browsers are
 * redirected from / to /docs.
 */
export function serveDocument(app: NestExpressApplication, baseUrl: string | undefined): void {
  const express = app.getHttpAdapter().getInstance() as Application;
  express.use(redirectBrowser);
  express.use('/docs', securityHeaders(baseUrl));
  // The links on the page are relative to /docs, and would be wrong at /docs/.
  express.get('/docs/', (_request: Request, response: Response) => {
    response.redirect(308, '../docs');
  });
  SwaggerModule.setup('docs', app, buildDocument(app, baseUrl ?? RELATIVE_BASE_URL), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    customSiteTitle: 'Plant Store',
    swaggerOptions: {
      // A relative `base_url` is resolved against this URL; only the browser knows the path prefix of a proxy.
      url: './openapi.json',
      persistAuthorization: true,
      tryItOutEnabled: true,
      displayRequestDuration: true,
      // The default layout has a logo with an inline style, which the Content-Security-Policy blocks.
      layout: 'BaseLayout',
    },
  });
}

/**
 * A middleware and not a route, because / exists only for browsers: with a route, another method would get a 405 with
 * `Allow: GET` instead of a 404.
 */
function redirectBrowser(request: Request, response: Response, next: NextFunction): void {
  if (request.path !== '/' || !['GET', 'HEAD'].includes(request.method)) return next();
  response.vary('Accept');
  // `accepts` alone is also true for */*, the default of clients that are not browsers.
  const isBrowser = /\btext\/html\b/i.test(request.headers.accept ?? '') && request.accepts('html');
  // A relative address keeps the path prefix of a proxy.
  if (isBrowser) response.redirect(302, 'docs');
  else next();
}
