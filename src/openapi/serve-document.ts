import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import type { Application, NextFunction, Request, Response } from 'express';
import { securityHeaders } from '../http/security-headers.js';
import { buildDocument } from './document.js';

/** Relative to the document: clients use the address from which they read it, including a path prefix of a proxy. */
const RELATIVE_BASE_URL = '.';

const PAGE = fileURLToPath(new URL('page', import.meta.url));
const SWAGGER_UI = dirname(createRequire(import.meta.url).resolve('swagger-ui-dist/package.json'));

/** The files of the page; no other file of the folders is served. */
const FILES: readonly (readonly [path: string, folder: string, file: string])[] = [
  ['/docs', PAGE, 'index.html'],
  ['/docs/page.css', PAGE, 'page.css'],
  ['/docs/page.js', PAGE, 'page.js'],
  ['/docs/icon.svg', PAGE, 'icon.svg'],
  ['/docs/swagger-ui.css', SWAGGER_UI, 'swagger-ui.css'],
  ['/docs/swagger-ui-bundle.js', SWAGGER_UI, 'swagger-ui-bundle.js'],
];

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
  for (const [path, root, file] of FILES) {
    express.get(path, (_request: Request, response: Response) => {
      response.sendFile(file, { root });
    });
  }
  SwaggerModule.setup('docs', app, buildDocument(app, baseUrl ?? RELATIVE_BASE_URL), {
    jsonDocumentUrl: 'openapi.json',
    yamlDocumentUrl: 'openapi.yaml',
    // The page of the library has no viewport for phones, and inline styles.
    ui: false,
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
