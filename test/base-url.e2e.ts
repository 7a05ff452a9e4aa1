import { expect, it } from '@jest/globals';
import { startService } from './setup/service.js';

interface Document {
  readonly servers: readonly { readonly variables: { readonly base_url: { default: string } } }[];
}

it.each([
  [{}, "'self'"],
  [{ BASE_URL: 'https://Plants.example.org/store' }, "'self' https://plants.example.org"],
  [{ BASE_URL: 'http://plants.example.org:8080' }, "'self' http://plants.example.org:8080"],
  [{ BASE_URL: 'http://[::1]:3000' }, "'self' http:"],
])('the page of Swagger UI may load its own files and call BASE_URL: %j', async (env, sources) => {
  const service = await startService(env);
  try {
    const { headers } = await service.request('/docs');
    expect(headers.get('content-security-policy')!.split(';')).toEqual([
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      `connect-src ${sources}`,
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
    ]);
  } finally {
    await service.close();
  }
});

it('BASE_URL becomes the default of base_url', async () => {
  const service = await startService({ BASE_URL: 'https://plants.example.org/store/' });
  try {
    const { body } = await service.request('/openapi.json');
    expect((body as Document).servers[0]!.variables.base_url.default).toBe(
      'https://plants.example.org/store',
    );
  } finally {
    await service.close();
  }
});
