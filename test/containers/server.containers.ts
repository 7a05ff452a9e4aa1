import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { useResources } from '../setup/jest/resources.js';
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { runContainer, type Container } from './engine.js';
import { startPostgres, type Postgres } from './postgres.js';

/** Characters that a URL cannot contain as they are. */
const PASSWORD = 'p/#%@: ?&é';

let postgres: Postgres;
let secrets: string;
const resources = useResources();

beforeAll(async () => {
  postgres = await startPostgres(PASSWORD);
  secrets = await mkdtemp(join(tmpdir(), 'plant-store-secrets-'));
});
afterAll(async () => {
  await postgres.remove();
  await rm(secrets, { recursive: true });
});

function run(options: string[]): Container {
  const container = runContainer([`--network=${postgres.network}`, ...options]);
  resources.defer(() => container.remove());
  return container;
}

/** @returns the options that give the container a file with a secret */
async function secret(name: string, text: string): Promise<string[]> {
  const path = join(secrets, name);
  await writeFile(path, `${text}\n`, { mode: 0o644 });
  return [`--volume=${path}:/run/secrets/${name}:ro`, `--env=${name}_FILE=/run/secrets/${name}`];
}

const urlWithPassword = () =>
  `postgres://plants:${encodeURIComponent(PASSWORD)}@${postgres.host}:5432/plants`;

/** Makes a token in the container, and stores a plant. */
async function expectToStore(container: Container, id: string): Promise<void> {
  const url = await container.url();
  const created = await container.exec('./plant-store', 'token', 'create', `for ${id}`);
  const token = /plantstore_\w+/.exec(created)![0];
  expect((await postPlant(url, token, id)).status).toBe(200);
  expect(await isStored(url, token, id)).toBe(true);
}

it('uses the server in DATABASE_URL, read-only and with 192 MB of memory', async () => {
  const limits = ['--read-only', '--cap-drop=ALL', '--security-opt=no-new-privileges'];
  const memory = ['--memory=192m', '--memory-swap=192m'];
  const container = run([`--env=DATABASE_URL=${urlWithPassword()}`, ...limits, ...memory]);
  await expectToStore(container, '1');
  expect(container.output.stdout).not.toContain('embedded Postgres');
});

it('takes the address from a file', async () => {
  const file = await secret('DATABASE_URL', urlWithPassword());
  await expectToStore(run([...file, '--user=10001:0', '--read-only']), '2');
});
