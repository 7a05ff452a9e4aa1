import { createServer, request as sendRequest, type Server } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { authorize, createPlantOf, launchBrowser, openPage } from './browser.js';
import { startServer, type StartedServer } from '../setup/http/open-server.js';
import { startService, type TestService } from '../setup/service/service.js';

describe('Swagger UI in a browser', () => {
  let service: TestService;
  /**
   * A service whose BASE_URL is the address of `service` behind the proxy. For its page, that is another origin if the page
   * was loaded directly, and the same origin if the page was loaded through the proxy.
   */
  let serviceWithBaseUrl: TestService;
  let proxy: StartedServer;
  let browser: Browser;

  const proxied = (path: string) => proxy.url + path;

  beforeAll(async () => {
    const ports = new Map<string, number>();
    proxy = await startServer(createPrefixProxy(ports));
    serviceWithBaseUrl = await startService({ BASE_URL: proxied('/garden/store') });
    // Passport keeps one strategy for the whole process, so the service that is built last checks all tokens.
    service = await startService();
    ports.set('/garden/store', service.port).set('/garden/other', serviceWithBaseUrl.port);
    browser = await launchBrowser([
      '--host-resolver-rules=MAP plants.example.org 127.0.0.1',
      // Treats the origin as if it used TLS. Otherwise, Chromium reports that it ignores Cross-Origin-Opener-Policy.
      `--unsafely-treat-insecure-origin-as-secure=http://plants.example.org:${service.port}`,
    ]);
  });
  afterAll(async () => {
    await browser.close();
    await proxy.close();
    await serviceWithBaseUrl.close();
    await service.close();
  });

  it.each([
    ['at the root', () => `${service.url}/docs`],
    ['at the root, with a slash', () => `${service.url}/docs/`],
    ['redirected from /', () => service.url],
    ['behind a path prefix', () => proxied('/garden/store/docs')],
    ['behind a path prefix, redirected from /', () => proxied('/garden/store/')],
    ['under a public name', () => `http://plants.example.org:${service.port}/docs`],
    ['with BASE_URL of another origin', () => `${serviceWithBaseUrl.url}/docs`],
    ['with BASE_URL of the same origin', () => proxied('/garden/other/docs')],
  ])(
    '%s: authorize, store a plant, see the response, reload, store it again',
    async (_where, url) => {
      await service.database.query('TRUNCATE plants');
      const { page, close } = await openPage(browser);
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));
      await page.addInitScript({
        content: `addEventListener('securitypolicyviolation', (event) =>
          console.error('Refused by the policy:', event.effectiveDirective, event.blockedURI))`,
      });

      await page.goto(url());
      await authorize(page, service.token);
      await execute(page);
      expect(await service.storedPlants()).toEqual([
        { id: '1649503004888048', name: 'Equisetum fluviatile', tag: 'Equisetum' },
      ]);

      await page.reload();
      await execute(page);
      expect(complaints).toEqual([]);
      await close();
    },
  );
});

/** Presses Execute and waits for the response. */
async function execute(page: Page): Promise<void> {
  const operation = createPlantOf(page);
  await operation.locator('.execute').click();
  const status = operation.locator('.live-responses-table .response-col_status').last();
  await status.waitFor();
  expect(await status.innerText()).toContain('200');
  const body = operation
    .locator('.live-responses-table .response-col_description .microlight')
    .first();
  expect(JSON.parse(await body.innerText())).toEqual({
    name: 'Equisetum fluviatile',
    tag: 'Equisetum',
  });
}

/** A proxy in front of several services: it removes the prefix of a path, and allows requests of other origins. */
function createPrefixProxy(ports: ReadonlyMap<string, number>): Server {
  return createServer((request, response) => {
    const { method, headers, url } = request;
    const prefix = [...ports.keys()].find((start) => url!.startsWith(`${start}/`));
    const { origin } = headers;
    if (origin !== undefined) {
      response.setHeader('Access-Control-Allow-Origin', origin);
      response.setHeader('Access-Control-Allow-Headers', 'authorization, content-type');
    }
    if (prefix === undefined || method === 'OPTIONS') {
      response.writeHead(prefix === undefined ? 502 : 204).end();
      return;
    }
    const upstream = sendRequest(
      {
        host: '127.0.0.1',
        port: ports.get(prefix),
        method,
        headers,
        path: url!.slice(prefix.length),
      },
      (received) => {
        response.writeHead(received.statusCode!, received.headers);
        received.pipe(response);
      },
    );
    request.pipe(upstream);
  });
}
