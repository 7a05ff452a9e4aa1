import { afterEach, describe, expect, it } from '@jest/globals';
import { LifecycleService } from '../../src/http/lifecycle.service.js';
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

  const options = (headers: Record<string, string>) =>
    service.request('/plants', { method: 'OPTIONS', headers });

  it('responds to the preflight of an allowed origin, and refuses all others with 405', async () => {
    service = await startService({ CORS_ORIGINS: `http://localhost:5173, ${ALLOWED}` });
    const allowed = await options({ origin: ALLOWED, ...PREFLIGHT });
    expect(allowed).toMatchObject({ status: 204, body: '' });
    expect(corsOf(allowed)).toMatchObject({ 'access-control-allow-origin': ALLOWED });
    const other = await options({ origin: OTHER, ...PREFLIGHT });
    expect(other).toMatchObject({ status: 405, body: { error: 40500 } });
    expect(corsOf(other)).toEqual({ vary: 'Origin' });
  });

  it('lets pages read every response, errors included', async () => {
    service = await startService({ CORS_ORIGINS: ALLOWED });
    const responses = [
      await service.post('{"id":1,"name":"a"}', { origin: ALLOWED }),
      await service.post('{"id":1,"name":"b"}', { origin: ALLOWED }),
      await service.request('/plants', { method: 'POST', headers: { origin: ALLOWED } }),
      await service.request('/nothing', { headers: { origin: ALLOWED } }),
    ];
    const other = await service.post('{"id":1,"name":"a"}', { origin: OTHER });
    expect(corsOf(other)).toEqual({ vary: 'Origin' });
    service.app.get(LifecycleService).stop();
    responses.push(await service.post('{"id":1,"name":"a"}', { origin: ALLOWED }));
    expect(responses.map(({ status }) => status)).toEqual([200, 400, 401, 404, 503]);
    for (const response of responses) {
      expect(corsOf(response)).toEqual({
        'access-control-allow-origin': ALLOWED,
        'access-control-expose-headers': 'Retry-After,X-Request-Id',
        vary: 'Origin',
      });
    }
  });

  it('lets no page begin a request while the service stops', async () => {
    service = await startService({ CORS_ORIGINS: ALLOWED });
    service.app.get(LifecycleService).stop();
    expect(await options({ origin: ALLOWED, ...PREFLIGHT })).toMatchObject({ status: 503 });
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
