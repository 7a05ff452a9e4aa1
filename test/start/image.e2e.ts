import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { cp, mkdtemp, rm, symlink } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { settings } from '../../src/config/config.js';
import { end, stop, urlOf } from '../setup/service/built-service.js';
import { ROOT, runProgram } from '../setup/service/command.js';
import { openTestDatabase } from '../setup/database/database.js';
import { METRICS_SETTING } from '../setup/service/metrics.js';
import { startService } from '../setup/service/service.js';

const dockerfile = readFileSync('Dockerfile', 'utf8');

/** The settings of the image itself. */
const imageSettings = Object.fromEntries(
  /^ENV (.+)$/m
    .exec(dockerfile)![1]!
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);

/** The program of an instruction, and its arguments. */
const commandOf = (instruction: RegExp) =>
  JSON.parse(instruction.exec(dockerfile)![1]!) as [string, ...string[]];

const HEALTH_CHECK = commandOf(/^HEALTHCHECK [^[]+(\[.+\])$/m);

/** Runs the health check of the image, and returns its exit code. */
async function check(port: number): Promise<number | null> {
  const [file, ...args] = HEALTH_CHECK;
  return await runProgram(file, args, { ...imageSettings, PORT: String(port) }).exit();
}

/** What the image contains of the project. */
const FILES = ['package.json', 'node_modules', 'dist', 'plant-store'];

describe('the image', () => {
  let server: Server | undefined;
  let dir: string;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'plant-store-image-'));
  });
  afterEach(async () => {
    server?.close();
    await rm(dir, { recursive: true });
  });

  it('listens on all addresses of its container', () => {
    expect(imageSettings).toMatchObject({ HOST: '0.0.0.0' });
  });

  it('runs as a user who is not root', () => {
    expect(dockerfile.match(/^USER .+$/gm)).toEqual(['USER node']);
  });

  it('has all files that the service and its commands need, and lets signals reach the service', async () => {
    const [program, ...args] = commandOf(/^CMD (\[.+\])$/m);
    for (const file of FILES) {
      const [source, target] = [join(ROOT, file), join(dir, file)];
      await (file === 'node_modules'
        ? symlink(source, target)
        : cp(source, target, { recursive: true }));
    }
    const database = await openTestDatabase();
    const env = { DATABASE_URL: database.url, PORT: '0', ...METRICS_SETTING };
    // With traces, because they have the version of the service.
    const traced = { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:1' };
    const readme = readFileSync('README.md', 'utf8');
    const [, command] = /^docker compose exec plant-store (.+)$/m.exec(readme)!;
    const [script, ...words] = command!.split(' ');
    const service = runProgram(program, args, traced, dir);
    try {
      const url = await urlOf(service);
      const create = runProgram(script!, words, env, dir);
      expect(await create.exit()).toBe(0);
      await stop({ command: service, url });
      // The collector that is away prevents no graceful stop.
      expect(service.stderr).toBe('');
      expect(service.stdout).toMatch(
        /stops: it received SIGTERM\.[^]*The Plant Store has stopped\./,
      );
    } finally {
      await end(service);
      await database.close();
    }
  });

  it('is checked at the port at which the service listens without settings', () => {
    const port = settings.shape.PORT.parse(undefined);
    expect(dockerfile).toMatch(new RegExp(`^EXPOSE ${port}$`, 'm'));
    expect(HEALTH_CHECK.at(-1)).toContain(`/\${PORT:-${port}}"`);
  });

  it('is healthy while the service responds, and only then', async () => {
    const service = await startService({ HOST: imageSettings['HOST']! });
    expect(await check(service.port)).toBe(0);
    await service.close();
    expect(await check(service.port)).not.toBe(0);
  });

  it('is healthy while its database is away, because another container would not find it either', async () => {
    const isAlive = ({ url }: IncomingMessage) => url === '/health/live';
    server = createServer((request, response) =>
      response.writeHead(isAlive(request) ? 200 : 503).end(),
    );
    await once(server.listen(0), 'listening');
    expect(await check((server.address() as AddressInfo).port)).toBe(0);
  });

  it.each([404, 500, 503])('is not healthy when the response is %d', async (status) => {
    server = createServer((_request, response) => response.writeHead(status).end());
    await once(server.listen(0), 'listening');
    expect(await check((server.address() as AddressInfo).port)).not.toBe(0);
  });
});

it.each([
  ['1.2.1', ['v1.2.0', 'v1.2.1'], '1.2.1 1'],
  // Versions are not in the order of letters.
  ['1.10.0', ['v1.9.0', 'v1.10.0', 'v2.0.0'], '1.10.0 1'],
  ['1.1.5', ['v1.1.5', 'v1.2.0'], '1.1.5'],
  ['1.9.1', ['v1.9.1', 'v1.10.0'], '1.9.1'],
  ['2.0.0', ['v1.9.0', 'v2.0.0', 'v2.1.0-rc.1', 'v10.0.0'], '2.0.0 2'],
])('the image of release %s, with the Git tags %j, gets the tags %s', (version, gitTags, tags) => {
  const script = join(ROOT, '.ci/image-tags');
  const input = gitTags.join('\n');
  expect(execFileSync(script, [version], { input, encoding: 'utf8' })).toBe(`${tags}\n`);
});

describe('the labels of the image', () => {
  const release = readFileSync('.github/workflows/release.yml', 'utf8');
  const variables = Object.fromEntries(
    [...dockerfile.matchAll(/^ARG (\w+)=(.+)$/gm)].map(([, name, value]) => [name!, value!]),
  );
  const labels = Object.fromEntries(
    [...dockerfile.matchAll(/org\.opencontainers\.image\.(\w+)="(.+)"/g)].map(([, name, value]) => [
      name!,
      value!.replaceAll(/\$(\w+)/g, (_, variable: string) => variables[variable]!),
    ]),
  );

  it('say without any argument what package.json says', () => {
    const { version, description, license } = JSON.parse(
      readFileSync('package.json', 'utf8'),
    ) as Record<string, string>;
    expect(labels).toEqual({
      title: 'Plant Store',
      description,
      licenses: license,
      source: expect.stringMatching(/^https:\/\//),
      version,
    });
  });

  it('have the version, source, revision and time of a release', () => {
    const passed = [...release.matchAll(/--build-arg "(\w+)=/g)].map(([, name]) => name);
    expect(passed.sort()).toEqual(Object.keys(variables).sort());
    const added = [...release.matchAll(/--label "org\.opencontainers\.image\.(\w+)=/g)];
    expect(added.map(([, name]) => name)).toEqual(['revision', 'created']);
  });
});

it('the image of a release is built for the processors that docs/deployment.md names', () => {
  const named = /^\*\*The image\*\* is \S+ for (\w+) and (\w+)\./m;
  const [, ...processors] = named.exec(readFileSync('docs/deployment.md', 'utf8'))!;
  const release = readFileSync('.github/workflows/release.yml', 'utf8');
  const [, platforms] = /docker buildx build .*--platform (\S+) /.exec(release)!;
  expect(platforms!.split(',')).toEqual(processors.map((processor) => `linux/${processor}`));
});
