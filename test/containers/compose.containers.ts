import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, rmSync } from 'node:fs';
import { cp, mkdtemp, readFile, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { useResources } from '../setup/jest/resources.js';
import { startLoad } from '../setup/model/load.js';
import { until } from '../setup/time/until.js';
import { isStored, postPlant } from '../setup/http/post-plant.js';
import { engine, ENGINE, environment, isPodman } from './engine.js';

/** Characters that a URL cannot contain as they are, and those that Compose would replace. */
const PASSWORD = 'p/#%@: $$x';

const PROJECT = 'plantstoretest';

const resources = useResources();
let folder: string;
let podmanService: ChildProcess | undefined;
let env: Record<string, string>;
const closing = new AbortController();

/** Runs Compose on a copy of the files of the project, with ports that are free. */
function compose(...args: string[]): Promise<string> {
  return composeWithInput('', ...args);
}

async function composeWithInput(input: string, ...args: string[]): Promise<string> {
  const [program, ...first] =
    ENGINE === 'docker' ? ['docker', 'compose'] : ['docker-compose', '--ansi=never'];
  const running = promisify(execFile)(program, [...first, '--project-name', PROJECT, ...args], {
    cwd: folder,
    env,
  });
  running.child.stdin!.end(input);
  return (await running).stdout;
}

/** Runs commands as an operator types them into a terminal, in the folder of the project. */
async function shell(commands: string): Promise<string> {
  return (await promisify(execFile)('sh', ['-euc', commands], { cwd: folder, env })).stdout;
}

/** Podman runs the checks of health by timers of systemd, which a container or a small machine does not have. */
async function checkHealth(): Promise<void> {
  const starting = ['ps', '--filter', `name=${PROJECT}`, '--filter', 'health=starting'];
  while (!closing.signal.aborted) {
    const names = await engine(...starting, '--format', '{{.Names}}');
    for (const name of names.split('\n').filter(Boolean)) {
      await engine('healthcheck', 'run', name).catch(() => undefined);
    }
    await delay(500);
  }
}

/**
 * Podman's name server answers nobody for some seconds while a container comes or goes, which is longer than a request waits for
 * a new connection: the replicas find Postgres without it. The instance that runs already has found it by its name.
 */
async function nameDatabase(): Promise<void> {
  const container = (await compose('ps', '--quiet', 'postgres')).trim();
  const addresses = '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}';
  const address = await engine('inspect', '--format', addresses, container);
  expect(address).toMatch(/^[\d.]+$/);
  const path = join(folder, 'docker-compose.yml');
  const file = await readFile(path, 'utf8');
  const replica = '  plant-store-replica:\n';
  const hosts = `${replica}    extra_hosts: ['postgres:${address}']\n`;
  expect(file).toContain(replica);
  await writeFile(path, file.replace(replica, hosts));
}

/** @returns the address at which Compose opened a port of a service */
async function addressOf(service: string, port: number): Promise<string> {
  return `http://${(await compose('port', service, String(port))).trim()}`;
}

let checks: Promise<void> | undefined;
let token: string;
let one: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'plant-store-compose-'));
  await cp('deploy', join(folder, 'deploy'), { recursive: true });
  const file = await readFile('docker-compose.yml', 'utf8');
  // Another program may use the port of the file.
  const ports = file.replaceAll(/'127\.0\.0\.1:\d+:(\d+)'/g, "'127.0.0.1::$1'");
  await writeFile(join(folder, 'docker-compose.yml'), ports);
  env = { ...environment(), POSTGRES_PASSWORD: PASSWORD };
  if (isPodman) {
    const socket = join(folder, 'podman.sock');
    podmanService = spawn('podman', ['system', 'service', '--time=0', `unix://${socket}`], {
      stdio: 'ignore',
    });
    await until(() => existsSync(socket));
    env['DOCKER_HOST'] = `unix://${socket}`;
    checks = checkHealth();
  }
  const monitoring = await readFile('docs/monitoring.md', 'utf8');
  const makeToken = /^openssl .+\nexport METRICS_TOKEN_SHA256=.+$/m.exec(monitoring)![0];
  env['METRICS_TOKEN_SHA256'] = await shell(`${makeToken}\nprintf %s "$METRICS_TOKEN_SHA256"`);
  await compose('up', '--no-build', '--detach', 'plant-store');
  one = await addressOf('plant-store', 3000);
  if (isPodman) await nameDatabase();
});
afterAll(async () => {
  try {
    await compose('--profile', 'scale', '--profile', 'observability', 'kill');
    await compose('--profile', 'scale', '--profile', 'observability', 'down', '--volumes');
  } finally {
    closing.abort();
    await checks;
    if (podmanService !== undefined) {
      podmanService.kill();
      await once(podmanService, 'exit');
    }
    rmSync(folder, { recursive: true });
  }
});

it('stores in a Postgres of its own, with a password of any characters', async () => {
  const readme = await readFile('README.md', 'utf8');
  const [, command] = /^docker compose exec (plant-store .+)$/m.exec(readme)!;
  const created = await compose('exec', '-T', ...command!.split(' '));
  token = /plantstore_\w+/.exec(created)![0];
  await until(() => fetchReady(one));
  expect((await postPlant(one, token, '1')).status).toBe(200);
  expect(await isStored(one, token, '1')).toBe(true);
});

it('loads plants from a file of the host, and exports them', async () => {
  const command = ['exec', '-T', 'plant-store', './plant-store', 'plants'];
  await composeWithInput('id,name,tag\n7,seven,\n8,eight,even\n', ...command, 'load', '-');
  const exported = await compose(...command, 'export');
  expect(exported.split('\n')).toEqual(expect.arrayContaining(['7,seven,', '8,eight,even']));
});

it('spreads plants over three replicas, and loses none when one is killed', async () => {
  await compose('--profile', 'scale', 'up', '--no-build', '--detach', 'proxy');
  const proxy = await addressOf('proxy', 8080);
  await until(() => fetchReady(proxy));
  const load = startLoad(resources, () => proxy, token, 8);
  await load.progress(500);
  const names = await engine('ps', '--filter', 'name=replica', '--format', '{{.Names}}');
  expect(names.split('\n')).toHaveLength(3);
  await engine('kill', names.split('\n')[0]!);
  // The stand-in for nginx does not notice that a replica has left: each later request tries it for a second.
  await load.progress(200);
  await load.stop();
  expect(load.failures).toEqual(new Map());
  for (const id of [...load.acknowledged].filter((_, i) => i % 50 === 0)) {
    expect(await isStored(proxy, token, id, `plant ${id}`)).toBe(true);
  }
});

it('Prometheus reads the metrics with the token in its file', async () => {
  await compose('--profile', 'observability', 'up', '--no-build', '--detach', 'prometheus');
  const prometheus = await addressOf('prometheus', 9090);
  const query = `${prometheus}/api/v1/query?query=up%7Bjob%3D%22plant-store%22%7D`;
  await until(async () => {
    const { data } = (await readJson(query)) as {
      data?: { result: { value: [number, string] }[] };
    };
    return data?.result.some(({ value: [, up] }) => up === '1') === true;
  });
});

/** @returns the JSON at an address of another program than the service; an empty object if there is no response */
async function readJson(url: string): Promise<unknown> {
  const curl = ['--silent', '--fail', url];
  return promisify(execFile)('curl', curl).then(
    ({ stdout }) => JSON.parse(stdout) as unknown,
    () => ({}),
  );
}

async function fetchReady(url: string): Promise<boolean> {
  return promisify(execFile)('curl', ['--silent', '--fail', `${url}/health/ready`]).then(
    () => true,
    () => false,
  );
}
