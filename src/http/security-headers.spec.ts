import { IncomingMessage, ServerResponse, type OutgoingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from '@jest/globals';
import type { Request, RequestHandler, Response } from 'express';
import { securityHeaders } from './security-headers.js';

function headersSetBy(middleware: RequestHandler): OutgoingHttpHeaders {
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  void middleware(request as Request, response as Response, () => undefined);
  return response.getHeaders();
}

function policyFor(baseUrl: string | undefined): Record<string, string> {
  const policy = headersSetBy(securityHeaders(baseUrl))['content-security-policy'] as string;
  return Object.fromEntries(
    policy.split(';').map((directive) => {
      const end = directive.indexOf(' ');
      return [directive.slice(0, end), directive.slice(end + 1)];
    }),
  );
}

describe('the page of Swagger UI', () => {
  it('loads only files of the service, and data: URLs only as images', () => {
    expect(policyFor(undefined)).toEqual({
      'default-src': "'none'",
      'script-src': "'self'",
      'style-src': "'self'",
      'img-src': "'self' data:",
      'connect-src': "'self'",
      'base-uri': "'none'",
      'form-action': "'none'",
      'frame-ancestors': "'none'",
    });
  });

  it.each([
    ['https://plants.example/v1/', 'https://plants.example'],
    ['http://plants.example:8080/a?b', 'http://plants.example:8080'],
    ['http://192.0.2.1:3000', 'http://192.0.2.1:3000'],
    ['http://[2001:db8::1]:3000/', 'http:'],
    ['https://[2001:db8::1]', 'https:'],
  ])('with the base URL %s also sends requests to %s', (baseUrl, source) => {
    expect(policyFor(baseUrl)['connect-src']).toBe(`'self' ${source}`);
  });

  it('is shown in no frame', () => {
    expect(headersSetBy(securityHeaders(undefined))).toMatchObject({ 'x-frame-options': 'DENY' });
  });

  it('does not demand TLS, which a proxy may or may not use', () => {
    expect(headersSetBy(securityHeaders(undefined))).not.toHaveProperty(
      'strict-transport-security',
    );
  });
});
