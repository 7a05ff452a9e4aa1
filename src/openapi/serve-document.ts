import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import type { Application, NextFunction, Request, Response } from 'express';
import { securityHeaders } from '../http/security-headers.js';
import { buildDocument } from './document.js';

/**
 * Serves the document at /openapi.json and /openapi.yaml, and Swagger UI at /docs, to which it sends browsers that ask
 * for /. Open to everybody.
 */
export function serveDocument(app: NestExpressApplication, baseUrl: string | undefined): void {
  // All links on the page are relative to /docs; from /docs/ they would lead astray.
  const express = app.getHttpAdapter().getInstance() as Application;
  express.use(redirectBrowser);
  express.use('/docs', securityHeaders(baseUrl));
  express.get('/docs/', (_request: Request, response: Response) => {
    response.redirect(308, '../docs');
  });
  SwaggerModule.setup('docs', app, buildDocument(app, baseUrl), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    customSiteTitle: 'Plant Store',
    swaggerOptions: {
      // What a relative `base_url` is relative to; behind a proxy, the page knows its prefix and we do not.
      url: './openapi.json',
      persistAuthorization: true,
      tryItOutEnabled: true,
      displayRequestDuration: true,
      // Without the bar on top: its logo inserts a style that the Content-Security-Policy refuses.
      layout: 'BaseLayout',
    },
  });
}

/**
 * No route: for every other client there is nothing at /, so other methods are refused with 404 as well, and not with
 * 405 and an Allow that promises a GET.
 */
function redirectBrowser(request: Request, response: Response, next: NextFunction): void {
  if (request.path !== '/' || !['GET', 'HEAD'].includes(request.method)) {
    next();
    return;
  }
  response.vary('Accept');
  // Of a client that takes everything (*/*), nobody knows that a person sits in front of it.
  const isBrowser = /\btext\/html\b/i.test(request.headers.accept ?? '') && request.accepts('html');
  // Relative: the prefix of a proxy stays.
  if (isBrowser) response.redirect(302, 'docs');
  else next();
}
