import { once } from 'node:events';
import { createServer, request as send, type IncomingMessage } from 'node:http';
import { describe, expect, it } from '@jest/globals';
import express, { type RequestHandler } from 'express';
import { openServer } from '../../test/setup/http/open-server.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { allowAllOrigins, allowOrigins, respondToPreflight } from './cors.js';

const ALLOWED = 'https://garden.example.org';
const OTHER = 'https://other.example.org';
const METHOD = { 'access-control-request-method': 'POST' };

describe('a response', () => {
  const resources = useResources();

  /** The status, and the header fields of CORS, of a route that responds with 405. */
  async function request(
    middleware: RequestHandler,
    method: string,
    headers: Record<string, string>,
  ): Promise<[status: number, fields: Record<string, string>]> {
    const app = express();
    app.use(middleware, respondToPreflight);
    app.use((_request, response) => void response.status(405).end());
    const { url } = await openServer(resources, createServer(app));
    // fetch sends no preflight that the test makes itself.
    const [response] = (await once(send(url, { method, headers }).end(), 'response')) as [
      IncomingMessage,
    ];
    response.resume();
    const fields = Object.entries(response.headers) as [string, string][];
    return [
      response.statusCode!,
      Object.fromEntries(fields.filter(([name]) => /^access-control-|^vary$/.test(name))),
    ];
  }

  it('to a preflight from an allowed origin says what its pages may send and read, for two hours', async () => {
    for (const origin of [ALLOWED, OTHER]) {
      expect(
        await request(allowOrigins([ALLOWED, OTHER]), 'OPTIONS', { origin, ...METHOD }),
      ).toEqual([
        204,
        {
          'access-control-allow-origin': origin,
          'access-control-allow-headers': 'Authorization,Content-Type',
          'access-control-allow-methods': 'GET,HEAD,POST',
          'access-control-expose-headers': 'Retry-After,X-Request-Id',
          'access-control-max-age': '7200',
          vary: 'Origin',
        },
      ]);
    }
  });

  it('can be read by pages of an allowed origin, whatever its status', async () => {
    expect(await request(allowOrigins([ALLOWED]), 'POST', { origin: ALLOWED, ...METHOD })).toEqual([
      405,
      {
        'access-control-allow-origin': ALLOWED,
        'access-control-expose-headers': 'Retry-After,X-Request-Id',
        vary: 'Origin',
      },
    ]);
  });

  it.each([
    ['a preflight from another origin', { origin: OTHER, ...METHOD }],
    [
      'a preflight from an origin that begins like an allowed one',
      { origin: `${ALLOWED}.other`, ...METHOD },
    ],
    ['a preflight from a page without an origin', { origin: 'null', ...METHOD }],
    ['a preflight that names no origin', METHOD],
    ['a request of another origin', { origin: OTHER }],
  ])('to %s is that of any method, and differs by origin for a cache', async (_kind, headers) => {
    expect(await request(allowOrigins([ALLOWED]), 'OPTIONS', headers)).toEqual([
      405,
      { vary: 'Origin' },
    ]);
  });

  it('to OPTIONS without a method is no response to a preflight', async () => {
    const [status] = await request(allowOrigins([ALLOWED]), 'OPTIONS', { origin: ALLOWED });
    expect(status).toBe(405);
  });

  it('is the same for all origins if all are allowed', async () => {
    const [status, fields] = await request(allowOrigins([ALLOWED, '*']), 'OPTIONS', {
      origin: OTHER,
      ...METHOD,
    });
    expect(status).toBe(204);
    expect(fields).toEqual({
      'access-control-allow-origin': '*',
      'access-control-allow-headers': 'Authorization,Content-Type',
      'access-control-allow-methods': 'GET,HEAD,POST',
      'access-control-expose-headers': 'Retry-After,X-Request-Id',
      'access-control-max-age': '7200',
    });
  });

  it('to a preflight that names no origin is that of any method, also if all origins are allowed', async () => {
    const [status] = await request(allowOrigins(['*']), 'OPTIONS', METHOD);
    expect(status).toBe(405);
  });

  it('that is no secret can be read by pages of all origins', async () => {
    const open: RequestHandler = (_request, response, next) => {
      allowAllOrigins(response);
      next();
    };
    expect(await request(open, 'GET', {})).toEqual([405, { 'access-control-allow-origin': '*' }]);
  });
});
