import {
  chromium,
  type Browser,
  type BrowserContextOptions,
  type Locator,
  type Page,
  type Response,
} from 'playwright-core';
import { expectDocumented, isDocumented } from '../setup/http/documented.js';

/** Starts Chromium, named by CHROMIUM. */
export function launchBrowser(args: readonly string[] = []): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      ...args,
    ],
  });
}

/** A page of a browser with nothing stored, and its end. */
export interface CheckedPage {
  readonly page: Page;
  /** @throws UndocumentedError when the page received a response that is not as openapi.json says */
  readonly close: () => Promise<void>;
}

export async function openPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<CheckedPage> {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  const checks: Promise<void>[] = [];
  page.on('response', (response) => {
    const checked = check(response);
    // `close` reports it.
    checked.catch(() => undefined);
    checks.push(checked);
  });
  return {
    page,
    close: async () => {
      // Not before the checks, because a closed page has no bodies any more.
      await Promise.all(checks).finally(() => context.close());
    },
  };
}

async function check(response: Response): Promise<void> {
  const { pathname } = new URL(response.url());
  const method = response.request().method();
  // A page may lie under a prefix, which a proxy removes.
  const ends = [...pathname.matchAll(/\//g)].map(
    ({ index }) => `${method} ${pathname.slice(index)}`,
  );
  const request = ends.find(isDocumented);
  if (request === undefined && response.status() < 400) return;
  const headers = await response.allHeaders();
  await expectDocumented({
    status: response.status(),
    header: (name) => headers[name.toLowerCase()] ?? null,
    body: await response.text(),
    request: request ?? ends.at(-1)!,
  });
}

/** The part of Swagger UI that is about `POST /plants`. */
export const createPlantOf = (page: Page): Locator =>
  page.locator('#operations-plants-createPlant');

/** Gives a token to Swagger UI, as a person does. */
export async function authorize(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Authorize' });
  await dialog.locator('input').fill(token);
  await dialog.getByRole('button', { name: 'Authorize', exact: true }).click();
  await dialog.getByRole('button', { name: 'Close', exact: true }).click();
}
