import { afterEach, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../setup/service/service.js';

const ALLOWED = 'https://garden.example.org';
const OTHER = 'https://evil.example.org';

const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
};

/** The header fields of CORS in a response. */
const corsOf = ({ headers }: { headers: Headers }) =>
  Object.fromEntries([...headers].filter(([name]) => /^(access-control-|vary$)/.test(name)));

describe('CORS', () => {
  let service: TestService;

  afterEach(() => service.close());

  const options = (headers: Record<string, string>, path = '/plants') =>
    service.request(path, { method: 'OPTIONS', headers });

  it('answers the preflight of an allowed origin', async () => {
    service = await startService({ CORS_ORIGINS: `http://localhost:5173, ${ALLOWED}` });
    for (const origin of [ALLOWED, 'http://localhost:5173']) {
      const response = await options({ origin, ...PREFLIGHT });
      expect(response).toMatchObject({ status: 204, body: '' });
      expect(corsOf(response)).toMatchObject({ 'access-control-allow-origin': origin });
    }
  });

  it('refuses OPTIONS of every other kind with 405', async () => {
    service = await startService({ CORS_ORIGINS: ALLOWED });
    for (const headers of [
      { origin: OTHER, ...PREFLIGHT },
      { origin: `${ALLOWED}.evil.example.org`, ...PREFLIGHT },
      { origin: 'null', ...PREFLIGHT },
      PREFLIGHT,
      { origin: ALLOWED },
    ]) {
      const response = await options(headers);
      expect(response).toMatchObject({ status: 405, body: { error: 40500 } });
      if (!('origin' in headers) || headers.origin !== ALLOWED) {
        expect(corsOf(response)).toEqual({ vary: 'Origin' });
      }
    }
  });

  it('lets pages of all origins in with *, and without an origin nothing changes', async () => {
    service = await startService({ CORS_ORIGINS: '*' });
    const response = await options({ origin: OTHER, ...PREFLIGHT });
    expect(response.status).toBe(204);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect((await options(PREFLIGHT)).status).toBe(405);
  });

  it('lets pages read every response, errors included', async () => {
    service = await startService({ CORS_ORIGINS: ALLOWED });
    const responses = [
      await service.post('{"id":1,"name":"a"}', { origin: ALLOWED }),
      await service.post('{"id":1,"name":"b"}', { origin: ALLOWED }),
      await service.request('/plants', { method: 'POST', headers: { origin: ALLOWED } }),
      await service.request('/nothing', { headers: { origin: ALLOWED } }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 400, 401, 404]);
    for (const response of responses) {
      expect(corsOf(response)).toEqual({
        'access-control-allow-origin': ALLOWED,
        'access-control-expose-headers': 'Retry-After,X-Request-Id',
        vary: 'Origin',
      });
    }
    const other = await service.post('{"id":1,"name":"a"}', { origin: OTHER });
    expect(corsOf(other)).toEqual({ vary: 'Origin' });
  });

  it('is off by default: a preflight is 405, and no header field is sent', async () => {
    service = await startService();
    const preflight = await options({ origin: ALLOWED, ...PREFLIGHT });
    expect(preflight).toMatchObject({ status: 405, body: { error: 40500 } });
    expect(corsOf(preflight)).toEqual({});
    expect(corsOf(await service.post('{"id":1,"name":"a"}', { origin: ALLOWED }))).toEqual({});
  });

  it.each([{}, { CORS_ORIGINS: ALLOWED }])(
    'lets pages of all origins read the OpenAPI document with %j',
    async (env: Record<string, string>) => {
      service = await startService(env);
      for (const path of ['/openapi.json', '/openapi.yaml']) {
        const response = await service.request(path, { headers: { origin: OTHER } });
        expect(response.status).toBe(200);
        expect(response.headers.get('access-control-allow-origin')).toBe('*');
      }
    },
  );
});
