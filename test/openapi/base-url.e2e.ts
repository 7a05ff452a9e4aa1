import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import { sendRaw } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

interface Document {
  readonly servers: readonly { readonly variables: { readonly base_url: { default: string } } }[];
}

const defaultIn = (document: unknown) =>
  (document as Document).servers[0]!.variables.base_url.default;

it('BASE_URL becomes the default of base_url, whatever address the request used', async () => {
  const service = await startService({ BASE_URL: 'https://plants.example.org/store/' });
  try {
    for (const path of ['/openapi.json', '/docs/openapi.json']) {
      const { body } = await service.request(path);
      expect(defaultIn(body)).toBe('https://plants.example.org/store');
    }
  } finally {
    await service.close();
  }
});

describe('without BASE_URL, the default of base_url', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ TRUSTED_PROXY_HOPS: '1' });
  });
  afterAll(() => service.close());

  it.each([
    [['Host: plants.example.org'], 'http://plants.example.org'],
    [['Host: Plants.example.org:8080'], 'http://plants.example.org:8080'],
    [['Host: [::1]:3000'], 'http://[::1]:3000'],
    [['Host: a', 'X-Forwarded-Proto: https'], 'https://a'],
    [['Host: a', 'X-Forwarded-Proto: javascript'], 'http://a'],
    [['Host: a', 'X-Forwarded-Host: evil.example.org'], 'http://a'],
    [['Host: a:99999'], '.'],
    [['Host: '], '.'],
    [[], '.'],
  ])('is the address of the request: %j', async (lines, expected) => {
    for (const [path, parse] of [
      ['/openapi.json', (text: string) => JSON.parse(text) as unknown],
      ['/openapi.yaml', (text: string) => parseYaml(text) as unknown],
    ] as const) {
      // Only HTTP/1.0 allows a request without Host.
      const version = lines.length === 0 ? '1.0' : '1.1';
      const head = [`GET ${path} HTTP/${version}`, ...lines].join('\r\n');
      const { body, headers } = await sendRaw(service.port, `${head}\r\n\r\n`);
      expect(defaultIn(parse(body))).toBe(expected);
      expect(headers['cache-control']).toBe('no-store');
    }
  });

  it('is relative in the document of the page, which may be behind a path prefix', async () => {
    const { body } = await service.request('/docs/openapi.json');
    expect(defaultIn(body)).toBe('..');
  });

  it('does not depend on X-Forwarded-Proto without a trusted proxy', async () => {
    const direct = await startService();
    try {
      const headers = { 'x-forwarded-proto': 'https' };
      const { body } = await direct.request('/openapi.json', { headers });
      expect(defaultIn(body)).toBe(direct.url);
    } finally {
      await direct.close();
    }
  });
});
