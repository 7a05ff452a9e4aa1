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
    const answer = await service.request(path, { method: 'POST', body: '{}' });
    expect(answer).toMatchObject({
      status: 404,
      body: { error: 40400, message: expect.any(String) },
    });
    expect(answer.headers.get('www-authenticate')).toBeNull();
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s /plants is 40500 with Allow, even without a token',
    async (method) => {
      const answer = await service.request('/plants', { method });
      expect(answer).toMatchObject({ status: 405, body: { error: 40500 } });
      expect(answer.headers.get('allow')).toBe('POST');
    },
  );

  it('HEAD /plants is 405 with Allow and without a body', async () => {
    const answer = await service.request('/plants', { method: 'HEAD' });
    expect(answer).toMatchObject({ status: 405, body: '' });
    expect(answer.headers.get('allow')).toBe('POST');
  });

  it.each(['/docs', '/openapi.json', '/openapi.yaml', '/health/live', '/health/ready', '/metrics'])(
    'DELETE %s is 40500 with Allow',
    async (path) => {
      const answer = await service.request(path, { method: 'DELETE' });
      expect(answer).toMatchObject({ status: 405, body: { error: 40500 } });
      expect(answer.headers.get('allow')).toBe('GET, HEAD');
    },
  );

  it('a query disturbs nobody', async () => {
    const answer = await service.request('/plants?x=1&access_token=y', {
      method: 'POST',
      headers: { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' },
      body: '{"id":1,"name":"a"}',
    });
    expect(answer).toMatchObject({ status: 200 });
  });

  it('takes the absolute form of a request target, as RFC 9112 section 3.2.2 demands', async () => {
    const answer = await sendRaw(
      service.port,
      'POST http://example.org/plants HTTP/1.1\r\nHost: x\r\n\r\n',
    );
    expect(answer.status).toBe(401);
  });
});
