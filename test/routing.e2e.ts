import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { sendRaw } from './setup/raw-http.js';
import { startService, type TestService } from './setup/service.js';

describe('routing is strict', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it.each([
    '/',
    '/plants/',
    '/PLANTS',
    '/Plants',
    '/plants/1',
    '//plants',
    '/plant',
    '/%70lants',
    '/plants%2f',
    '/%',
    '/api',
    '/health',
    '/docs/nothing',
    '/openapi.json/',
  ])('POST %s is 40400, even without a token', async (path) => {
    const response = await service.request(path, { method: 'POST', body: '{}' });
    expect(response).toMatchObject({
      status: 404,
      body: { error: 40400, message: expect.any(String) },
    });
    expect(response.headers.get('www-authenticate')).toBeNull();
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s /plants is 40500 with Allow, even without a token',
    async (method) => {
      const response = await service.request('/plants', { method });
      expect(response).toMatchObject({ status: 405, body: { error: 40500 } });
      expect(response.headers.get('allow')).toBe('POST');
    },
  );

  it('HEAD /plants is 405 with Allow and without a body', async () => {
    const response = await service.request('/plants', { method: 'HEAD' });
    expect(response).toMatchObject({ status: 405, body: '' });
    expect(response.headers.get('allow')).toBe('POST');
  });

  it.each(['/docs', '/openapi.json', '/openapi.yaml', '/health/live', '/health/ready', '/metrics'])(
    'DELETE %s is 40500 with Allow',
    async (path) => {
      const response = await service.request(path, { method: 'DELETE' });
      expect(response).toMatchObject({ status: 405, body: { error: 40500 } });
      expect(response.headers.get('allow')).toBe('GET, HEAD');
    },
  );

  it('a query is ignored', async () => {
    const response = await service.request('/plants?x=1&access_token=y', {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: '{"id":1,"name":"a"}',
    });
    expect(response).toMatchObject({ status: 200 });
  });

  it('accepts the absolute form of a request target, as RFC 9112 section 3.2.2 requires', async () => {
    const response = await sendRaw(
      service.port,
      'POST http://example.org/plants HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    expect(response.status).toBe(401);
  });
});
