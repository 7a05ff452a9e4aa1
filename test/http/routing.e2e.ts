import { readFileSync } from 'node:fs';
import type { Application } from 'express';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { version } from '../../src/config/version.js';
import { METHODS } from '../../src/http/methods.js';
import { openConnection, plantRequest, readResponses, sendRaw } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

/** As Express writes them: `get /plants/:id`. */
const OPERATIONS = Object.entries(
  (JSON.parse(readFileSync('openapi.json', 'utf8')) as { paths: Record<string, object> }).paths,
).flatMap(([path, operations]) =>
  Object.keys(operations).map((method) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`),
);

let service: TestService;

beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.close());

describe('routing is strict', () => {
  it.each([
    '/plants/',
    '//plants',
    '/PLANTS',
    '/%70lants',
    '/plants%2f',
    '/%',
    '/plants/1',
    '/health',
    '/openapi.json/',
  ])('POST %s is 40400, even without a token', async (path) => {
    const response = await service.request(path, { method: 'POST', body: '{}' });
    expect(response).toMatchObject({ status: 404, body: { error: 40400 } });
    expect(response.headers.get('www-authenticate')).toBeNull();
    expect(response.headers.get('allow')).toBeNull();
  });

  it.each(['GET', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])(
    '%s /plants is 40500 with Allow, even without a token',
    async (method) => {
      const response = await service.request('/plants?a=b', { method });
      expect(response).toMatchObject({
        status: 405,
        body: { error: 40500, message: `/plants does not support ${method}, only POST.` },
      });
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

describe('every route needs a token', () => {
  it('except the routes in this list', async () => {
    const { router } = service.app.getHttpAdapter().getInstance() as Application;
    const routes = router.stack
      .flatMap((layer) => (layer.route === undefined ? [] : [layer.route]))
      .flatMap(({ path, stack }) => stack.map(({ method }) => ({ method, path })));
    // For any other method, the metrics have no label, and pages of other origins no permission.
    expect(METHODS.map((method) => method.toLowerCase())).toEqual(
      expect.arrayContaining(routes.map(({ method }) => method)),
    );
    const open: string[] = [];
    const closed: string[] = [];
    for (const { method, path } of routes) {
      const { status } = await service.request(path, {
        method: method.toUpperCase(),
        redirect: 'manual',
      });
      (status === 401 ? closed : open).push(`${method} ${path}`);
    }
    expect(closed.sort()).toEqual(['get /metrics', ...OPERATIONS].sort());
    expect([...new Set(open)].sort()).toEqual([
      'get /docs',
      'get /docs/',
      'get /docs/icon.svg',
      'get /docs/openapi.json',
      'get /docs/page.css',
      'get /docs/page.js',
      'get /docs/swagger-ui-bundle.js',
      'get /docs/swagger-ui.css',
      'get /health/live',
      'get /health/ready',
      'get /openapi.json',
      'get /openapi.yaml',
    ]);
  });

  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';

  it.each([
    ['GET', '/', BROWSER],
    ['HEAD', '/', BROWSER],
    ['GET', '/?from=bookmark', 'application/json, text/html;q=0.1'],
  ])(
    '%s %s redirects a browser to /docs, with a relative address, for proxies with a path prefix',
    async (method, path, accept) => {
      const response = await service.request(path, {
        method,
        headers: { accept },
        redirect: 'manual',
      });
      expect(response.status).toBe(302);
      expect(response.headers.get('location')).toBe('docs');
      expect(response.headers.get('vary')).toBe('Accept');
      const page = await service.request(path, { headers: { accept } });
      expect(page).toMatchObject({ status: 200, body: expect.stringContaining('swagger-ui') });
    },
  );

  it('GET /docs/ redirects for good, with a relative address, for proxies with a path prefix', async () => {
    const response = await service.request('/docs/', { redirect: 'manual' });
    expect(response.status).toBe(308);
    expect(response.headers.get('location')).toBe('../docs');
  });

  it.each(['*/*', 'text/html;q=0', 'text/htmlx', ''])(
    'GET / with Accept %j is 40400 and names /docs',
    async (accept) => {
      const response = await service.request('/', { headers: { accept }, redirect: 'manual' });
      expect(response).toMatchObject({
        status: 404,
        body: { error: 40400, message: expect.stringContaining('/docs') },
      });
      expect(response.headers.get('vary')).toBe('Accept');
    },
  );

  it('GET / without Accept is 40400', async () => {
    const { status, body } = await sendRaw(service.port, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect({ status, body }).toEqual({ status: 404, body: expect.stringContaining('40400') });
  });

  it('POST / is 40400 for a browser', async () => {
    const response = await service.request('/', { method: 'POST', headers: { accept: BROWSER } });
    expect(response).toMatchObject({ status: 404, body: { error: 40400 } });
    expect(response.headers.get('allow')).toBeNull();
  });

  it.each([
    ['/health/live', { status: 'ok', version }],
    ['/health/ready', { status: 'ok' }],
  ])('%s responds with %j', async (path, body) => {
    expect(await service.request(path)).toMatchObject({ status: 200, body });
  });

  it('/metrics accepts an ordinary token', async () => {
    const response = await service.request('/metrics', {
      headers: { authorization: `Bearer ${service.token}` },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toContain('text/plain');
    expect(response.body).toContain('process_cpu_seconds_total');
  });
});

describe('a connection', () => {
  const LIVE = 'GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n';

  it('may send any number of requests', async () => {
    const socket = await openConnection(service.port);
    const statuses: number[] = [];
    // A server may not forget that a request has its response: only 16 may have none.
    for (let i = 0; i < 10; i++) {
      socket.write(LIVE.repeat(10));
      statuses.push(...(await readResponses(socket, 10)).map(({ status }) => status));
    }
    socket.destroy();
    expect(statuses).toEqual(Array(100).fill(200));
  });

  // RFC 9110 section 7.8: a server may ignore it. Java's client sends it with its first request.
  it('stays as it is when a client offers another protocol', async () => {
    const socket = await openConnection(service.port);
    const offer = ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAEA'];
    socket.write(plantRequest(service.token, '{"id":1,"name":"a"}', offer));
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 200 }]);
    socket.write(LIVE);
    expect(await readResponses(socket, 1)).toMatchObject([{ status: 200 }]);
    socket.destroy();
  });
});

describe('every response', () => {
  const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

  it('forbids a browser to guess its type, names no software, and has no hash of what may change', async () => {
    const responses = [
      await service.post('{"id":2,"name":"a"}'),
      await service.request('/nothing'),
      ...(await Promise.all(
        ['/health/live', '/openapi.json', '/openapi.yaml'].map((path) => service.request(path)),
      )),
    ];
    for (const { headers } of [...responses, await service.request('/docs')])
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    for (const { headers } of responses) {
      expect(headers.get('x-powered-by')).toBeNull();
      expect(headers.get('etag')).toBeNull();
    }
  });

  it.each(['a', 'A-1_b.c:d', 'x'.repeat(128)])(
    'has the id %s if its client sent that',
    async (id) => {
      const { headers } = await service.request('/nothing', { headers: { 'x-request-id': id } });
      expect(headers.get('x-request-id')).toBe(id);
    },
  );

  it.each([
    ['none', []],
    ['an empty one', ['']],
    ['one with a space', ['a b']],
    ['one with a quote', ['a"']],
    ['one with another sign', ['a=b']],
    ['one that is too long', ['x'.repeat(129)]],
    ['one that may be a token', ['plantstore_a']],
    ['two', ['a', 'b']],
  ])('has a new id if its client sent %s', async (_kind, ids) => {
    const lines = ['GET /nothing HTTP/1.1', 'Host: x', ...ids.map((id) => `X-Request-Id: ${id}`)];
    const { headers } = await sendRaw(service.port, `${lines.join('\r\n')}\r\n\r\n`);
    expect(headers['x-request-id']).toMatch(UUID);
  });

  it('to HEAD has the length of the body that GET would get', async () => {
    const head = await service.request('/health/live', { method: 'HEAD' });
    const { body } = await service.request('/health/live');
    expect(head.headers.get('content-length')).toBe(String(JSON.stringify(body).length));
  });
});

it('a browser keeps the files of the page for an hour', async () => {
  for (const file of ['page.js', 'page.css', 'swagger-ui-bundle.js', 'swagger-ui.css']) {
    const { status, headers } = await service.request(`/docs/${file}`);
    expect({ file, status }).toEqual({ file, status: 200 });
    expect(headers.get('cache-control')).toBe('public, max-age=3600');
  }
});
