import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { ROOT, runProgram } from './setup/command.js';
import { startService } from './setup/service.js';

const dockerfile = readFileSync('Dockerfile', 'utf8');

/** The settings of the image itself. */
const imageSettings = Object.fromEntries(
  /^ENV (.+)$/m
    .exec(dockerfile)![1]!
    .split(' ')
    .map((pair) => pair.split('=') as [string, string]),
);

/** Runs the health check of the image, and returns its exit code. */
async function check(port: number): Promise<number | null> {
  const command = /^HEALTHCHECK [^[]+(\[.+\])$/m.exec(dockerfile)![1]!;
  const [file, ...args] = JSON.parse(command) as [string, ...string[]];
  return await runProgram(file, args, { ...imageSettings, PORT: String(port) }).exit();
}

describe('the image', () => {
  let server: Server | undefined;

  afterEach(() => void server?.close());

  it('listens on all addresses of its container', () => {
    expect(imageSettings).toMatchObject({ HOST: '0.0.0.0' });
  });

  it('runs as a user who is not root, and owns the folder of the embedded database', () => {
    expect(dockerfile.match(/^USER .+$/gm)).toEqual(['USER node']);
    expect(imageSettings).toMatchObject({ DATA_DIR: '/data' });
    expect(dockerfile).toMatch(/^COPY --from=build --chown=node:node \/data \/data$/m);
  });

  it('is healthy while the service responds, and only then', async () => {
    const service = await startService({ HOST: imageSettings['HOST']! });
    expect(await check(service.port)).toBe(0);
    await service.close();
    expect(await check(service.port)).not.toBe(0);
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
