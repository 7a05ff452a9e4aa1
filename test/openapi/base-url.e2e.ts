import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { parse as parseYaml } from 'yaml';
import { sendRaw } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';

interface Document {
  readonly servers: readonly { readonly variables: { readonly base_url: { default: string } } }[];
}

const defaultIn = (document: unknown) =>
  (document as Document).servers[0]!.variables.base_url.default;

/** The policy of the page, into which people write their tokens: only its own files, and requests to the service. */
const policy = (connections: string) =>
  `default-src 'none';script-src 'self';style-src 'self';img-src 'self' data:;connect-src 'self'${connections};base-uri 'none';form-action 'none';frame-ancestors 'none'`;

it.each([
  ['https://plants.example.org/store/', 'https://plants.example.org'],
  // A policy cannot contain an IPv6 address.
  ['http://[2001:db8::1]:3000', 'http:'],
])(
  'BASE_URL %s becomes the default of base_url, and the page may send requests to %s',
  async (baseUrl, source) => {
    const service = await startService({ BASE_URL: baseUrl });
    try {
      for (const path of ['/openapi.json', '/docs/openapi.json']) {
        const { body } = await service.request(path);
        expect(defaultIn(body)).toBe(baseUrl.replace(/\/$/, ''));
      }
      const { headers } = await service.request('/docs');
      expect(headers.get('content-security-policy')).toBe(policy(` ${source}`));
    } finally {
      await service.close();
    }
  },
);

describe('without BASE_URL', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ TRUSTED_PROXY_HOPS: '1' });
  });
  afterAll(() => service.close());

  it.each([
    [['Host: Plants.example.org:8080'], 'http://plants.example.org:8080'],
    [['Host: [::1]:3000'], 'http://[::1]:3000'],
    [['Host: a', 'X-Forwarded-Proto: https'], 'https://a'],
    [['Host: a', 'X-Forwarded-Proto: javascript'], 'http://a'],
    [['Host: a', 'X-Forwarded-Host: other.example.org'], 'http://a'],
    [['Host: a:99999'], '.'],
    [['Host: '], '.'],
    [[], '.'],
  ])('the default of base_url is the address of the request: %j', async (lines, expected) => {
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

  it('the document of the page has a relative address, because the page may be behind a path prefix', async () => {
    const { body } = await service.request('/docs/openapi.json');
    expect(defaultIn(body)).toBe('..');
  });

  it('the page may send requests to its own address only, is shown in no frame, and demands no TLS', async () => {
    const { headers } = await service.request('/docs');
    expect(headers.get('content-security-policy')).toBe(policy(''));
    expect(headers.get('x-frame-options')).toBe('DENY');
    // The service does not know whether a proxy in front of it uses TLS.
    expect(headers.get('strict-transport-security')).toBeNull();
  });
});

it('without a trusted proxy, the default of base_url does not depend on X-Forwarded-Proto', async () => {
  const service = await startService();
  try {
    const headers = { 'x-forwarded-proto': 'https' };
    const { body } = await service.request('/openapi.json', { headers });
    expect(defaultIn(body)).toBe(service.url);
  } finally {
    await service.close();
  }
});
