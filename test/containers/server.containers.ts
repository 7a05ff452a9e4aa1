import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { useResources } from '../setup/jest/resources.js';
import { startLoad } from '../setup/model/load.js';
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { engine, runContainer, type Container } from './engine.js';
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

function run(options: string[], command: string[] = []): Container {
  const container = runContainer([`--network=${postgres.network}`, ...options], command);
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
const urlWithoutPassword = () => `postgres://plants@${postgres.host}:5432/plants`;

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

it('takes the password from PGPASSWORD', async () => {
  const env = [`--env=DATABASE_URL=${urlWithoutPassword()}`, `--env=PGPASSWORD=${PASSWORD}`];
  await expectToStore(run(env), '2');
});

it('takes the password from a file', async () => {
  const env = [`--env=DATABASE_URL=${urlWithoutPassword()}`];
  await expectToStore(run([...env, ...(await secret('PGPASSWORD', PASSWORD))]), '3');
});

it('takes the address from a file', async () => {
  const file = await secret('DATABASE_URL', urlWithPassword());
  await expectToStore(run([...file, '--user=10001:0', '--read-only']), '4');
});

it('refuses a secret that is given twice', async () => {
  const file = await secret('DATABASE_URL', urlWithPassword());
  const container = run([...file, `--env=DATABASE_URL=${urlWithPassword()}`]);
  expect(await container.output.exit()).toBe(1);
  expect(container.output.stderr).toMatch(
    /DATABASE_URL.*DATABASE_URL_FILE|DATABASE_URL_FILE.*DATABASE_URL/,
  );
  expect(container.output.stderr).not.toContain(encodeURIComponent(PASSWORD));
});

it.each(['/run/secrets/nothing', '/dev/null', '/tmp'])(
  'names the file that has no secret: %s',
  async (path) => {
    const container = run([`--env=DATABASE_URL_FILE=${path}`]);
    expect(await container.output.exit()).toBe(1);
    expect(container.output.stderr).toContain('DATABASE_URL_FILE');
    expect(container.output.stderr).toContain(path);
  },
);

it('takes the hash of the token for metrics from a file', async () => {
  const token = randomBytes(32).toString('base64url');
  const hash = createHash('sha256').update(token).digest('hex');
  const file = await secret('METRICS_TOKEN_SHA256', hash);
  const url = await run([`--env=DATABASE_URL=${urlWithPassword()}`, ...file]).url();
  const statusWith = async (sent: string) => {
    const headers = { authorization: `Bearer ${sent}` };
    return (await fetchDocumented(`${url}/metrics`, { headers })).status;
  };
  expect(await statusWith(token)).toBe(200);
  expect(await statusWith('wrong')).toBe(401);
});

it('says which password was wrong, and not the password', async () => {
  const env = [`--env=DATABASE_URL=${urlWithoutPassword()}`, '--env=PGPASSWORD=wrong-secret'];
  const container = run(env);
  expect(await container.output.exit()).toBe(1);
  expect(container.output.stderr).toContain('password authentication failed for user "plants"');
  expect(container.output.stderr).not.toContain('wrong-secret');
});

it('brings the schema up to date on command', async () => {
  const env = [`--env=DATABASE_URL=${urlWithPassword()}`];
  expect(await run(env, ['./plant-store', 'migrate']).output.exit()).toBe(0);
});

it('waits for a server that is not there yet, until it is stopped', async () => {
  const container = run(['--env=DATABASE_URL=postgres://plants@nowhere.invalid/plants']);
  await container.output.waitFor(/Waiting for the database at nowhere\.invalid/);
  await engine('stop', '--time', '30', container.name);
  expect(await container.output.exit()).toBe(0);
});

it('loses no acknowledged plant when one of two replicas is killed under load', async () => {
  const env = [`--env=DATABASE_URL=${urlWithPassword()}`];
  const [killed, other] = [run(env), run(env)];
  const urls = [await killed.url(), await other.url()];
  const created = await other.exec('./plant-store', 'token', 'create', 'load');
  const token = /plantstore_\w+/.exec(created)![0];
  let turn = 0;
  const load = startLoad(() => urls[turn++ % urls.length]!, token);
  await load.progress(1000);
  await killed.signal('SIGKILL');
  urls.shift();
  await load.progress(2000);
  await load.stop();
  const rows = new Set(await postgres.query('SELECT id FROM plants'));
  expect([...load.acknowledged].filter((id) => !rows.has(id))).toEqual([]);
});
