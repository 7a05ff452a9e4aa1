import { chromium, type Browser, type Page } from 'playwright-core';

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

/** Gives a token to Swagger UI, as a person does. */
export async function authorize(page: Page, token: string): Promise<void> {
  await page.getByRole('button', { name: 'Authorize' }).first().click();
  const dialog = page.getByRole('dialog', { name: 'Authorize' });
  await dialog.locator('input').fill(token);
  await dialog.getByRole('button', { name: 'Authorize', exact: true }).click();
  await dialog.getByRole('button', { name: 'Close', exact: true }).click();
}
