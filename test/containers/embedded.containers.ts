import { randomUUID } from 'node:crypto';
import { describe, expect, it } from '@jest/globals';
import { useResources } from '../setup/jest/resources.js';
import { startLoad } from '../setup/model/load.js';
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { engine, makeFolder, printedToken, runContainer, type Container } from './engine.js';

const LARGEST_ID = '9223372036854775807';

const resources = useResources();

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

async function folderOf(uid: number): Promise<string> {
  const { path, remove } = await makeFolder(uid);
  resources.defer(remove);
  return `${path}:/data`;
}

async function storeIn(container: Container, id = LARGEST_ID): Promise<void> {
  const response = await postPlant(await container.url(), await printedToken(container), id);
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
  const entries = lines.map((line) => JSON.parse(line) as { level: string; msg: string });
  expect(entries.at(-1)!.msg).toBe('The Plant Store has stopped.');
  const warnings = entries.filter(({ level }) => level !== 'info').map(({ msg }) => msg);
  expect(warnings).toEqual([
    expect.stringMatching(
      /^DATABASE_URL is not set: plants are stored in .* in \/data\. .* or set DATABASE_URL /,
    ),
  ]);
});

describe('its plants stay', () => {
  it('in a named volume', async () => expectToKeep(['--volume', await makeVolume()]));

  it('in a folder of the machine that belongs to its user', async () =>
    expectToKeep(['--volume', await folderOf(1000)]));

  it.each(['10001:0', '0:0'])('in a volume of user %s', async (user) =>
    expectToKeep(['--user', user, '--volume', await makeVolume()]),
  );

  it('in a folder of root, for root', async () =>
    expectToKeep(['--user', '0:0', '--volume', await folderOf(0)]));

  it('for any user and group, with a file system that is read-only, and without capabilities', async () =>
    expectToKeep(['--user', '10001:10001', ...RESTRICTED, '--volume', await makeVolume()]));

  it('after kill -9 under load: all that were acknowledged', async () => {
    const volume = ['--volume', await makeVolume()];
    const killed = run(volume);
    const url = await killed.url();
    const load = startLoad(resources, () => url, await printedToken(killed));
    await load.progress(1000);
    await killed.signal('SIGKILL');
    await killed.output.exit();
    await load.stop();

    const container = run(volume);
    await container.url();
    const exported = await container.exec('./plant-store', 'plants', 'export');
    const stored = new Set(exported.split('\n').map((line) => line.split(',')[0]));
    expect([...load.acknowledged].filter((id) => !stored.has(id))).toEqual([]);
  });
});

it('starts for the first time, and serves 64 connections, with 384 MB of memory, read-only and without a volume', async () => {
  const container = run([...RESTRICTED, '--memory=384m', '--memory-swap=384m']);
  const url = await container.url();
  const load = startLoad(resources, () => url, await printedToken(container), 64);
  await load.progress(3000);
  await stop(container);
  await load.stop();
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

// An engine makes the folder of a bind mount as root.
it.each([0, 12_345])('refuses a folder of user %i, and says what to do', async (uid) => {
  const container = run(['--volume', await folderOf(uid)]);
  expect(await container.output.exit()).toBe(1);
  expect(container.output.stderr).toContain(
    `/data belongs to another user (uid ${uid}). Start as that user, or stop its service and give it to yours (chown -R 1000 /data), or set DATA_DIR`,
  );
});
