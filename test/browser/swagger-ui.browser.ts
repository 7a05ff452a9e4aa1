import { once } from 'node:events';
import { createServer, request as sendRequest, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { chromium, type Browser, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { startService, type TestService } from '../setup/service.js';

describe('Swagger UI in a browser', () => {
  let service: TestService;
  let proxy: Server;
  let browser: Browser;

  beforeAll(async () => {
    service = await startService();
    proxy = startPrefixProxy('/garden/store', service.port);
    await once(proxy.listen(0, '127.0.0.1'), 'listening');
    browser = await chromium.launch({
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    });
  });
  afterAll(async () => {
    await browser.close();
    proxy.close();
    await service.close();
  });

  it.each([
    ['at the root', () => `${service.url}/docs`],
    ['at the root, with a slash', () => `${service.url}/docs/`],
    [
      'behind a path prefix',
      () => `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/garden/store/docs`,
    ],
  ])(
    '%s: authorize, store a plant, see the answer, reload, store it again',
    async (_where, url) => {
      await service.database.query('TRUNCATE plants');
      const page = await (await browser.newContext()).newPage();
      page.setDefaultTimeout(5000);
      const complaints: string[] = [];
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      page.on('pageerror', (error) => complaints.push(error.message));

      await page.goto(url());
      await page.getByRole('button', { name: 'Authorize' }).first().click();
      await page.locator('.auth-container input').fill(service.token);
      await page
        .locator('.auth-container')
        .getByRole('button', { name: 'Apply credentials' })
        .click();
      await page.getByRole('button', { name: 'Close', exact: true }).click();
      await page.locator('.opblock-summary').click();
      await execute(page);
      expect(await service.storedPlants()).toEqual([
        { id: '1649503004888048', name: 'Equisetum fluviatile', tag: 'Equisetum' },
      ]);

      await page.reload();
      await execute(page);
      expect(complaints).toEqual([]);
      if (process.env['SCREENSHOT'] !== undefined) {
        await page.screenshot({ path: process.env['SCREENSHOT'], fullPage: true });
      }
      await page.context().close();
    },
  );
});

/** Presses Execute and waits for the answer. */
async function execute(page: Page): Promise<void> {
  await page.locator('.execute').click();
  const answer = page.locator('.live-responses-table .response-col_status').last();
  await answer.waitFor();
  expect(await answer.innerText()).toContain('200');
  const body = page.locator('.live-responses-table .response-col_description .microlight').first();
  expect(JSON.parse(await body.innerText())).toEqual({
    name: 'Equisetum fluviatile',
    tag: 'Equisetum',
  });
}

/** A proxy that serves the service under a prefix and takes the prefix away. */
function startPrefixProxy(prefix: string, port: number): Server {
  return createServer((request, response) => {
    if (!request.url!.startsWith(`${prefix}/`)) {
      response.writeHead(502).end();
      return;
    }
    const { method, headers, url } = request;
    const upstream = sendRequest(
      { host: '127.0.0.1', port, method, headers, path: url!.slice(prefix.length) },
      (answer) => {
        response.writeHead(answer.statusCode!, answer.headers);
        answer.pipe(response);
      },
    );
    request.pipe(upstream);
  });
}
