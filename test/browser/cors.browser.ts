import { createServer } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { launchBrowser, openPage } from './browser.js';
import { startServer, type StartedServer } from '../setup/http/open-server.js';
import { startService, type TestService } from '../setup/service/service.js';

/** Starts a web site whose pages are empty. */
function startSite(): Promise<StartedServer> {
  return startServer(
    createServer((_request, response) => {
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Garden</title>');
    }),
  );
}

describe('a web page of another origin', () => {
  let service: TestService;
  let browser: Browser;
  let allowed: StartedServer;
  let other: StartedServer;

  beforeAll(async () => {
    allowed = await startSite();
    other = await startSite();
    service = await startService({ CORS_ORIGINS: allowed.url, AUTH_FAILURES_PER_MINUTE: '1' });
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser.close();
    await allowed.close();
    await other.close();
    await service.close();
  });

  /** What a script of the page sees of a response; its error if it sees none. */
  const send = (page: Page, path: string, init: object = {}) =>
    page.evaluate(
      `fetch(${JSON.stringify(service.url + path)}, ${JSON.stringify(init)}).then(
        async (response) => ({
          status: response.status,
          requestId: response.headers.get('x-request-id') !== null,
          retryAfter: response.headers.get('retry-after') !== null,
          error: (await response.json()).error,
        }),
        (error) => error.name,
      )`,
    );
  const plant = (id: number, token: string) => ({
    method: 'POST',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ id, name: 'a' }),
  });

  it('stores a plant and reads every error, if its origin is allowed', async () => {
    const { page, close } = await openPage(browser);
    await page.goto(allowed.url);
    const seen = { requestId: true, retryAfter: false, error: undefined };
    expect(await send(page, '/plants', plant(1, service.token))).toEqual({ ...seen, status: 200 });
    expect(await send(page, '/plants', { ...plant(1, service.token), body: '{}' })).toEqual({
      ...seen,
      status: 400,
      error: 40005,
    });
    expect(await send(page, '/plants', plant(1, 'wrong'))).toMatchObject({ error: 40101 });
    expect(await send(page, '/plants', plant(1, 'wrong'))).toEqual({
      ...seen,
      status: 429,
      error: 42900,
      retryAfter: true,
    });
    await close();
  });

  it('sends no plant if its origin is not allowed, and reads nothing but the OpenAPI document', async () => {
    const { page, close } = await openPage(browser);
    await page.goto(other.url);
    expect(await send(page, '/plants', plant(2, service.token))).toBe('TypeError');
    expect(await send(page, '/health/live')).toBe('TypeError');
    expect(await send(page, '/openapi.json')).toMatchObject({ status: 200 });
    const ids = (await service.storedPlants()).map(({ id }) => id);
    expect(ids).not.toContain('2');
    await close();
  });
});
