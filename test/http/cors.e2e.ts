import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { LifecycleService } from '../../src/http/lifecycle.service.js';
import { startService, type TestService } from '../setup/service/service.js';

const ALLOWED = 'https://garden.example.org';
const OTHER = 'https://other.example.org';
const METHOD = { 'access-control-request-method': 'POST' };

const READABLE = { 'access-control-expose-headers': 'Retry-After,X-Request-Id' };
const PERMISSIONS = {
  ...READABLE,
  'access-control-allow-headers': 'Authorization,Content-Type',
  'access-control-allow-methods': 'GET,HEAD,POST',
  'access-control-max-age': '7200',
};

let service: TestService;

/** @returns the status, and the header fields of CORS */
async function send(
  method: string,
  path: string,
  sent: Record<string, string>,
): Promise<[status: number, fields: object]> {
  const { status, headers } = await service.request(path, { method, headers: sent });
  const fields = [...headers].filter(([name]) => /^(access-control-|vary$)/.test(name));
  return [status, Object.fromEntries(fields)];
}

const options = (headers: Record<string, string>) => send('OPTIONS', '/plants', headers);

async function expectOpenDocument(): Promise<void> {
  for (const path of ['/openapi.json', '/openapi.yaml']) {
    expect(await send('GET', path, { origin: OTHER })).toMatchObject([
      200,
      { 'access-control-allow-origin': '*' },
    ]);
  }
}

describe('a service that names origins', () => {
  beforeAll(async () => {
    service = await startService({ CORS_ORIGINS: `http://localhost:5173, ${ALLOWED}` });
  });
  afterAll(() => service.close());

  it('says in the response to a preflight from each of them what its pages may send and read, for two hours', async () => {
    for (const origin of [ALLOWED, 'http://localhost:5173']) {
      expect(await options({ origin, ...METHOD })).toEqual([
        204,
        { ...PERMISSIONS, 'access-control-allow-origin': origin, vary: 'Origin' },
      ]);
    }
  });

  it.each<[string, Record<string, string>]>([
    ['a preflight from another origin', { origin: OTHER, ...METHOD }],
    ['a preflight from one that begins like it', { origin: `${ALLOWED}.other`, ...METHOD }],
    ['a preflight from a page without an origin', { origin: 'null', ...METHOD }],
    ['a preflight that names no origin', METHOD],
    ['a request of another origin', { origin: OTHER }],
  ])(
    'responds to %s as to any method, and differently by origin for a cache',
    async (_kind, headers) => {
      expect(await options(headers)).toEqual([405, { vary: 'Origin' }]);
    },
  );

  it('lets their pages read every response, errors included', async () => {
    // Without a method, it is no preflight.
    expect(await options({ origin: ALLOWED })).toMatchObject([405, {}]);
    const responses = [
      await send('DELETE', '/plants', { origin: ALLOWED }),
      await send('POST', '/plants', { origin: ALLOWED }),
      await send('GET', '/nothing', { origin: ALLOWED }),
      await send('GET', '/health/live', { origin: ALLOWED }),
    ];
    service.app.get(LifecycleService).stop();
    responses.push(await send('POST', '/plants', { origin: ALLOWED }));
    // No page may begin a request now.
    expect(await options({ origin: ALLOWED, ...METHOD })).toMatchObject([503, {}]);
    await service.restart();
    const fields = { ...READABLE, 'access-control-allow-origin': ALLOWED, vary: 'Origin' };
    expect(responses).toEqual([405, 401, 404, 200, 503].map((status) => [status, fields]));
  });

  it('lets pages of all origins read the OpenAPI document', expectOpenDocument);
});

describe('a service that allows all origins', () => {
  beforeAll(async () => {
    service = await startService({ CORS_ORIGINS: '*' });
  });
  afterAll(() => service.close());

  it('sends each of them the same response', async () => {
    const fields = { ...PERMISSIONS, 'access-control-allow-origin': '*' };
    expect(await options({ origin: OTHER, ...METHOD })).toEqual([204, fields]);
    expect(await options(METHOD)).toMatchObject([405, {}]);
  });
});

describe('a service without this setting', () => {
  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('responds to a preflight as to any method, and sends no header field of CORS', async () => {
    expect(await options({ origin: ALLOWED, ...METHOD })).toEqual([405, {}]);
    expect(await send('POST', '/plants', { origin: ALLOWED })).toEqual([401, {}]);
  });

  it('lets pages of all origins read the OpenAPI document', expectOpenDocument);
});
