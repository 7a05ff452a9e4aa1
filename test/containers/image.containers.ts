import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { until } from '../setup/time/until.js';
import { engine, isPodman, post, runContainer, type Container } from './engine.js';

const LARGEST_ID = '9223372036854775807';

let container: Container;
let url: string;

beforeAll(async () => {
  container = runContainer([]);
  url = await container.url();
});
afterAll(() => container.remove());

it('makes, lists and revokes tokens beside the service', async () => {
  const created = await container.exec('./plant-store', 'token', 'create', 'me');
  const token = /plantstore_\w+/.exec(created)![0];
  expect((await post(url, token, '1')).status).toBe(200);
  expect(await container.exec('./plant-store', 'token', 'list')).toContain('me');
  await container.exec('./plant-store', 'token', 'revoke', 'me', '--yes');
  await until(async () => (await post(url, token, '2')).status === 401);
});

it('loads plants with a token in a file, and exports them', async () => {
  const script = `./plant-store token create loader > /tmp/token
    echo id,name,tag > /tmp/plants.csv; echo ${LARGEST_ID},a,b >> /tmp/plants.csv
    PLANT_STORE_TOKEN_FILE=/tmp/token ./plant-store plants load /tmp/plants.csv >&2
    ./plant-store plants export`;
  expect(await container.exec('sh', '-euc', script)).toContain(`${LARGEST_ID},a,b`);
});

it('serves the page for people, and all files of it', async () => {
  const page = await (await fetchDocumented(`${url}/docs`)).text();
  const files = [...page.matchAll(/(?:href|src)="([^"#]+\.\w+)"/g)].map(([, file]) => file!);
  expect(files.length).toBeGreaterThanOrEqual(4);
  for (const file of files) {
    const { status } = await fetchDocumented(new URL(file, `${url}/docs`).href);
    expect([file, status]).toEqual([file, 200]);
  }
});

it('is healthy while it responds', async () => {
  if (isPodman) await engine('healthcheck', 'run', container.name);
  else {
    await until(
      async () =>
        (await engine('inspect', '--format={{.State.Health.Status}}', container.name)) ===
        'healthy',
    );
  }
});

it('says in one line which setting is wrong', async () => {
  const wrong = runContainer(['--env=PORT=http']);
  expect(await wrong.output.exit()).toBe(1);
  expect(wrong.output.stderr).toMatch(/^PORT must be a whole number from 0 to 65535$/m);
  await wrong.remove();
});

it('runs as an ordinary user, and names itself', async () => {
  const format = '{{.Config.User}} {{index .Config.Labels "org.opencontainers.image.title"}}';
  expect(await engine('image', 'inspect', `--format=${format}`, 'plant-store')).toBe(
    'node Plant Store',
  );
  const labels = await engine(
    'image',
    'inspect',
    '--format={{json .Config.Labels}}',
    'plant-store',
  );
  for (const name of ['description', 'licenses', 'source', 'version']) {
    expect(JSON.parse(labels)).toHaveProperty([`org.opencontainers.image.${name}`]);
  }
});
