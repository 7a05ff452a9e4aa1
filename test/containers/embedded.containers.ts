import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { randomUUID } from 'node:crypto';
import { chown } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { noResponse } from '../setup/http/fetch-documented.js';
import { until } from '../setup/time/until.js';
import {
  engine,
  isPodman,
  isStored,
  post,
  printedToken,
  runContainer,
  type Container,
} from './engine.js';

const LARGEST_ID = '9223372036854775807';

let resources: AsyncDisposableStack;

beforeEach(() => {
  resources = new AsyncDisposableStack();
});
afterEach(() => resources.disposeAsync());

function run(options: string[] = [], command: string[] = []): Container {
  const container = runContainer(options, command);
  resources.defer(() => container.remove());
  return container;
}

async function makeVolume(): Promise<string> {
  const name = `plant-store-test-${randomUUID()}`;
  await engine('volume', 'create', name);
  resources.defer(async () => void (await engine('volume', 'rm', '--force', name)));
  return `${name}:/data`;
}

async function makeFolder(uid: number): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
  resources.defer(() => rm(path, { recursive: true }));
  if (process.getuid!() === 0) await chown(path, uid, uid);
  return `${path}:/data`;
}

async function storeIn(container: Container, id = LARGEST_ID): Promise<void> {
  const response = await post(await container.url(), await printedToken(container), id);
  expect(response.status).toBe(200);
}

async function expectStoredIn(container: Container, id = LARGEST_ID): Promise<void> {
  expect(await isStored(await container.url(), await printedToken(container), id)).toBe(true);
}

/** Stops it as an engine does, and expects that it ends by itself. */
async function stop({ name, output }: Container): Promise<void> {
  await engine('stop', '--time', '30', name);
  expect(await output.exit()).toBe(0);
}

/** The life of a container, twice on the same data. */
async function expectToKeep(options: string[]): Promise<void> {
  const first = run(options);
  await storeIn(first);
  await stop(first);
  await expectStoredIn(run(options));
}

const RESTRICTED = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];

it('without arguments, it starts, stores, writes its log as JSON, and stops', async () => {
  const container = run();
  await storeIn(container);
  await stop(container);
  const lines = container.output.stdout.trim().split('\n');
  const messages = lines.map((line) => (JSON.parse(line) as { msg: string }).msg);
  expect(messages).toContain('The Plant Store has stopped.');
  expect(messages[0]).toMatch(/^DATABASE_URL is not set: plants are stored in .* in \/data\./);
});

describe('its plants stay', () => {
  it('in a named volume', async () => expectToKeep(['--volume', await makeVolume()]));

  it('in a folder of the machine that belongs to its user', async () =>
    expectToKeep(['--volume', await makeFolder(1000)]));

  it.each(['10001:0', '0:0'])('in a volume of user %s', async (user) =>
    expectToKeep(['--user', user, '--volume', await makeVolume()]),
  );

  it('in a folder of root, for root', async () =>
    expectToKeep(['--user', '0:0', '--volume', await makeFolder(0)]));

  it('for any user and group, with a file system that is read-only, and without capabilities', async () =>
    expectToKeep(['--user', '10001:10001', ...RESTRICTED, '--volume', await makeVolume()]));

  it('after kill -9 under load: all that were acknowledged', async () => {
    const volume = ['--volume', await makeVolume()];
    const killed = run(volume);
    const url = await killed.url();
    const token = await printedToken(killed);
    const acknowledged: string[] = [];
    let next = 1;
    const client = async () => {
      for (;;) {
        const id = String(next++);
        const response = await post(url, token, id).catch(noResponse);
        if (response === undefined) return;
        if (response.status === 200) acknowledged.push(id);
      }
    };
    const clients = Array.from({ length: 16 }, client);
    await until(() => acknowledged.length > 1000);
    await killed.signal('SIGKILL');
    await Promise.all(clients);
    await killed.output.exit();

    const container = run(volume);
    const again = await container.url();
    const newToken = await printedToken(container);
    const missing: string[] = [];
    for (const id of acknowledged) {
      if (!(await isStored(again, newToken, id))) missing.push(id);
    }
    expect(missing).toEqual([]);
  });
});

it('starts for the first time with 384 MB of memory, read-only and without a volume', async () => {
  await storeIn(run([...RESTRICTED, '--memory=384m', '--memory-swap=384m']));
});

it('refuses a volume that another container uses, and leaves that one alone', async () => {
  const volume = ['--volume', await makeVolume()];
  const first = run(volume);
  await storeIn(first);
  const second = run(volume);
  expect(await second.output.exit()).toBe(1);
  expect(second.output.stderr).toContain('/data is in use by another Plant Store');
  await expectStoredIn(first);
});

it('refuses a folder of another user, and says what to do', async () => {
  const container = run(['--volume', await makeFolder(12_345)]);
  expect(await container.output.exit()).toBe(1);
  expect(container.output.stderr).toMatch(
    /\/data .*\(uid 12345\).* Start as that user, or set DATA_DIR/,
  );
});

it('makes, lists and revokes tokens beside the service', async () => {
  const container = run();
  const url = await container.url();
  const created = await container.exec('./plant-store', 'token', 'create', 'me');
  const token = /plantstore_\w+/.exec(created)![0];
  expect((await post(url, token, '1')).status).toBe(200);
  expect(await container.exec('./plant-store', 'token', 'list')).toContain('me');
});

it('is healthy while it responds', async () => {
  const container = run();
  await container.url();
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
  const container = run(['--env=PORT=http']);
  expect(await container.output.exit()).toBe(1);
  expect(container.output.stderr).toMatch(/^PORT must be a whole number from 0 to 65535$/m);
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
