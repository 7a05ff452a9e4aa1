import type { NestExpressApplication } from '@nestjs/platform-express';
import { SwaggerModule } from '@nestjs/swagger';
import type { Application, Request, Response } from 'express';
import { securityHeaders } from '../http/security-headers.js';
import { buildDocument } from './document.js';

/** Serves the document at /openapi.json and /openapi.yaml, and Swagger UI at /docs. Open to everybody. */
export function serveDocument(app: NestExpressApplication, baseUrl: string | undefined): void {
  // All links on the page are relative to /docs; from /docs/ they would lead astray.
  const express = app.getHttpAdapter().getInstance() as Application;
  express.use('/docs', securityHeaders());
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
    },
  });
}
