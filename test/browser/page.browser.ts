import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { AxeResults } from 'axe-core';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { authorize, createPlantOf, launchBrowser, openPage, type CheckedPage } from './browser.js';
import { startService, type TestService } from '../setup/service/service.js';

/** Rules that axe-core leaves out unless asked. Lighthouse checks most of them. */
const MORE_RULES = [
  'identical-links-same-purpose',
  'label-content-name-mismatch',
  'table-fake-caption',
  'target-size',
  'td-has-header',
];
const AXE_OPTIONS = { rules: Object.fromEntries(MORE_RULES.map((id) => [id, { enabled: true }])) };

/** The colors that axe-core reads are the last ones only when no element changes its color any more. */
const TRANSITIONS_ENDED = `Promise.allSettled(
  document.getAnimations().filter((each) => each instanceof CSSTransition).map((each) => each.finished),
)`;

/** Adds an operation of every other method to the OpenAPI document that a page loads, with a parameter in its path. */
async function addOperations(page: Page): Promise<void> {
  const operation = {
    tags: ['plants'],
    summary: 'Another operation',
    parameters: [{ name: 'id', in: 'path', required: true, schema: { type: 'integer' } }],
    responses: { 200: { description: 'Done' } },
  };
  await page.route('**/docs/openapi.json', async (route) => {
    const response = await route.fetch();
    const { paths, ...rest } = (await response.json()) as { paths: object };
    const methods = ['get', 'put', 'patch', 'delete'];
    const added = Object.fromEntries(methods.map((method) => [method, operation]));
    await route.fulfill({
      response,
      json: { ...rest, paths: { ...paths, '/plants/{id}': added } },
    });
  });
}

const VIEWS = [
  { viewport: { width: 375, height: 812 }, isMobile: true, colorScheme: 'light' },
  { viewport: { width: 375, height: 812 }, isMobile: true, colorScheme: 'dark' },
  { viewport: { width: 1280, height: 900 }, colorScheme: 'light' },
  { viewport: { width: 1280, height: 900 }, colorScheme: 'dark' },
] as const;

describe('the page of Swagger UI', () => {
  let service: TestService;
  let browser: Browser;
  let axe: string;

  beforeAll(async () => {
    service = await startService();
    browser = await launchBrowser();
    axe = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
  });
  afterAll(async () => {
    await browser.close();
    await service.close();
  });

  const open = async (
    options?: BrowserContextOptions,
    prepare?: (page: Page) => Promise<void>,
  ): Promise<CheckedPage> => {
    const opened = await openPage(browser, options);
    await prepare?.(opened.page);
    await opened.page.goto(`${service.url}/docs`);
    await createPlantOf(opened.page).locator('.execute').waitFor();
    return opened;
  };

  const findings = async (page: Page): Promise<string[]> => {
    await page.evaluate(TRANSITIONS_ENDED);
    await page.evaluate(axe);
    const { violations } = await page.evaluate<AxeResults>(
      `axe.run(${JSON.stringify(AXE_OPTIONS)})`,
    );
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ target }) => `${id}: ${target.join(' ')}`),
    );
  };

  it.each(VIEWS)('is accessible, and no wider than the screen: %j', async (view) => {
    const { page, close } = await open(view);
    const width = () => page.evaluate<number>('document.documentElement.scrollWidth');
    for (const summary of await page.locator('details:not([open]) > summary').elementHandles())
      await summary.click();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Authorize' }).first().click();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await authorize(page, service.token);
    await page.getByRole('button', { name: 'Authorize' }).first().click();
    await page.getByRole('button', { name: 'Logout' }).waitFor();
    expect(await findings(page)).toEqual([]);
    await page.getByRole('button', { name: 'Close', exact: true }).click();
    await createPlantOf(page).locator('.execute').click();
    await createPlantOf(page).locator('.live-responses-table').waitFor();
    expect(await findings(page)).toEqual([]);
    expect(await width()).toBe(view.viewport.width);
    expect(await page.locator('html.dark-mode').count()).toBe(view.colorScheme === 'dark' ? 1 : 0);
    for (const tab of await page.getByRole('tab', { name: 'Schema' }).all()) await tab.click();
    await page.getByRole('button', { name: 'Expand all' }).first().click();
    await page.locator('.models-control').click();
    expect(await findings(page)).toEqual([]);
    await close();
  });

  // So that the next operation needs no change of the page.
  it.each(VIEWS.slice(0, 2))(
    'is also accessible with operations of other methods: %j',
    async (view) => {
      const { page, close } = await open(view, addOperations);
      await page.getByText('Another operation').last().waitFor();
      expect(await findings(page)).toEqual([]);
      await close();
    },
  );

  it('begins with the name of the product and the description, without what helps nobody', async () => {
    const { page, close } = await open({ viewport: { width: 1100, height: 1480 } });
    // The picture of docs/api.md.
    const folder = process.env['SCREENSHOTS'];
    if (folder !== undefined) await page.screenshot({ path: `${folder}/swagger-ui.png` });
    const text = await page.locator('body').innerText();
    const order = [
      'Plant Store',
      'exactly, once, for good',
      'Authorize',
      'Store a plant',
      'Execute',
    ];
    const positions = order.map((words) => text.indexOf(words));
    expect(positions).toEqual(positions.toSorted((a, b) => a - b));
    expect(text).toMatch(/^Plant Store/);
    for (const noise of ['default', 'Computed URL', 'Servers', 'No parameters', 'No links']) {
      expect(text).not.toContain(noise);
    }
    await close();
  });

  it('shows the example of the first response, and of each other one by the keyboard', async () => {
    const { page, close } = await open();
    const examples = createPlantOf(page).locator('.response .model-example');
    const shown = () => examples.filter({ visible: true }).count();
    expect([await examples.count(), await shown()]).toEqual([6, 1]);
    const failed = createPlantOf(page).locator('.response', { hasText: 'The request failed' });
    await failed.locator('summary').press('Enter');
    expect(await shown()).toBe(2);
    await failed.getByLabel('Example', { exact: true }).selectOption('bodyInvalid');
    await failed.getByText('40005', { exact: true }).waitFor();
    await failed.locator('summary').press('Enter');
    expect(await shown()).toBe(1);
    await close();
  });

  it('has no button on the text of a request or a response', async () => {
    const { page, close } = await open();
    await authorize(page, service.token);
    await createPlantOf(page)
      .getByLabel('Request body')
      .fill(`{"id": 1.5, "name": 3, "tag": null, "more": "${'more '.repeat(50)}"}`);
    await createPlantOf(page).locator('.execute').click();
    await createPlantOf(page).locator('.live-responses-table', { hasText: '40005' }).waitFor();
    for (const part of ['.curl-command', '.live-responses-table .highlight-code']) {
      const [text, button] = await Promise.all(
        ['pre', 'button'].map((tag) => page.locator(`${part} ${tag}`).last().boundingBox()),
      );
      expect(button!.y).toBeGreaterThanOrEqual(text!.y + text!.height);
    }
    await close();
  });

  it('explains what to do when the token that it remembers is no longer valid', async () => {
    const tokens = service.app.get(AccessTokensService);
    const { page, close } = await open();
    await authorize(page, (await tokens.create('gone')).token);
    await page.reload();
    await service.database.query("UPDATE access_tokens SET revoked_at = now() WHERE name = 'gone'");
    await createPlantOf(page).locator('.execute').click();
    const help = page.getByRole('alert');
    await help.waitFor();
    for (const words of [
      'Authorize',
      'Logout',
      'token for development',
      './plant-store token create',
    ]) {
      expect(await help.innerText()).toContain(words);
    }
    await close();
  });

  it('does not blame the token for the error of another kind', async () => {
    const { page, close } = await open();
    await authorize(page, service.token);
    await createPlantOf(page).getByLabel('Request body').fill('{"id": 1}');
    await createPlantOf(page).locator('.execute').click();
    await createPlantOf(page).locator('.live-responses-table', { hasText: '40005' }).waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    await close();
  });

  it('becomes dark and light with the system', async () => {
    const { page, close } = await open({ colorScheme: 'light' });
    for (const [colorScheme, state] of [
      ['dark', 'html.dark-mode'],
      ['light', 'html:not(.dark-mode)'],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.locator(state).waitFor({ state: 'attached' });
    }
    await close();
  });

  it('sends the largest id as it was typed', async () => {
    const { page, close } = await open();
    await authorize(page, service.token);
    await createPlantOf(page)
      .getByLabel('Request body')
      .fill('{"id": 9223372036854775807, "name": "Quercus"}');
    await createPlantOf(page).locator('.execute').click();
    await createPlantOf(page).locator('.live-responses-table', { hasText: '200' }).waitFor();
    expect(await service.storedPlants()).toContainEqual({
      id: '9223372036854775807',
      name: 'Quercus',
    });
    await close();
  });
});
