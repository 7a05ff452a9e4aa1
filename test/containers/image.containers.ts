import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { until } from '../setup/time/until.js';
import { postPlant } from '../setup/http/post-plant.js';
import { engine, IMAGE, isPodman, runContainer, type Container } from './engine.js';

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
  expect((await postPlant(url, token, '1')).status).toBe(200);
  expect(await container.exec('./plant-store', 'token', 'list')).toContain('me');
  await container.exec('./plant-store', 'token', 'revoke', 'me', '--yes');
  await until(async () => (await postPlant(url, token, '2')).status === 401);
});

it('loads plants, and exports them', async () => {
  const script = `echo id,name,tag > /tmp/plants.csv; echo ${LARGEST_ID},a,b >> /tmp/plants.csv
    ./plant-store plants load /tmp/plants.csv >&2
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

/** Runs the health check of the image in the container, for a program that listens on this port there. */
async function isHealthy(port: number): Promise<boolean> {
  const format = '--format={{json .Config.Healthcheck.Test}}';
  const [, ...command] = JSON.parse(await engine('image', 'inspect', format, IMAGE)) as string[];
  return engine('exec', `--env=PORT=${port}`, container.name, ...command).then(
    () => true,
    () => false,
  );
}

it('is healthy while it responds, also if its database is away, and only then', async () => {
  if (isPodman) await engine('healthcheck', 'run', container.name);
  else {
    await until(
      async () =>
        (await engine('inspect', '--format={{.State.Health.Status}}', container.name)) ===
        'healthy',
    );
  }
  // Each port responds with a status of its own; the last one as a service whose database is away.
  const server = `const { createServer } = require('node:http');
    const listen = (port, statusOf) =>
      createServer(({ url }, response) => response.writeHead(statusOf(url)).end()).listen(port);
    for (const status of [404, 500, 503]) listen(8000 + status, () => status);
    listen(8200, (url) => url === '/health/live' ? 200 : 503);`;
  await engine('exec', '--detach', container.name, 'node', '--eval', server);
  await until(() => isHealthy(8200));
  const others = [8404, 8500, 8503, 8000];
  expect(await Promise.all(others.map(isHealthy))).toEqual(others.map(() => false));
});

it('has the licenses of its packages', async () => {
  for (const name of ['express', 'pg'])
    expect(await container.exec('ls', `node_modules/${name}`)).toContain('LICENSE');
});

it('has the packages for traces', async () => {
  const traced = runContainer(['--env=OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:9']);
  try {
    expect((await fetchDocumented(`${await traced.url()}/health/ready`)).status).toBe(200);
  } finally {
    await traced.remove();
  }
});

it('runs as an ordinary user, opens the port of the service, and has the labels of package.json', async () => {
  const inspect = (value: string) =>
    engine('image', 'inspect', `--format={{json .Config.${value}}}`, IMAGE);
  expect(JSON.parse(await inspect('User'))).toBe('node');
  expect(JSON.parse(await inspect('ExposedPorts'))).toEqual({ '3000/tcp': {} });
  const { version, description, license } = JSON.parse(
    await readFile('package.json', 'utf8'),
  ) as Record<string, string>;
  expect(JSON.parse(await inspect('Labels'))).toMatchObject({
    'org.opencontainers.image.title': 'Plant Store',
    'org.opencontainers.image.description': description,
    'org.opencontainers.image.licenses': license,
    'org.opencontainers.image.source': expect.stringMatching(/^https:\/\//),
    'org.opencontainers.image.version': version,
  });
});
