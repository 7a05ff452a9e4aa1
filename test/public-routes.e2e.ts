import type { Application } from 'express';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from './setup/service.js';

describe('every route asks for a token', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('with the exceptions listed here', async () => {
    const { router } = service.app.getHttpAdapter().getInstance() as Application;
    const routes = router.stack
      .flatMap((layer) => (layer.route === undefined ? [] : [layer.route]))
      .flatMap(({ path, stack }) => stack.map(({ method }) => ({ method, path })));
    const open: string[] = [];
    const closed: string[] = [];
    for (const { method, path } of routes) {
      const { status } = await service.request(path, {
        method: method.toUpperCase(),
        redirect: 'manual',
      });
      (status === 401 ? closed : open).push(`${method} ${path}`);
    }
    expect(closed.sort()).toEqual(['get /metrics', 'post /plants']);
    expect([...new Set(open)].sort()).toEqual([
      'get /docs',
      'get /docs/',
      'get /docs/LICENSE',
      'get /docs/docs/swagger-ui-init.js',
      'get /docs/index.html',
      'get /docs/swagger-ui-init.js',
      'get /health/live',
      'get /health/ready',
      'get /openapi.json',
      'get /openapi.yaml',
    ]);
  });

  it.each(['/health/live', '/health/ready'])('%s says ok', async (path) => {
    expect(await service.request(path)).toMatchObject({ status: 200, body: { status: 'ok' } });
  });

  it('and /metrics takes one like everything else', async () => {
    const answer = await service.request('/metrics', {
      headers: { authorization: `Bearer ${service.token}` },
    });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toContain('text/plain');
    expect(answer.body).toContain('process_cpu_seconds_total');
  });
});
