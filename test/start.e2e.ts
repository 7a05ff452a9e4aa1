import { execFile } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCommand, type Command } from './setup/command.js';

const MAIN = 'dist/main.js';
const CLI = 'dist/cli.js';

describe('started on the embedded database', () => {
  let dataDir: string;
  let started: Command[];

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
    await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
    started = [];
  });
  afterEach(async () => {
    for (const command of started) {
      command.process.kill('SIGKILL');
      await command.exit();
    }
    await rm(dataDir, { recursive: true });
  });

  const start = (env: Record<string, string> = {}): Command => {
    const command = runCommand([MAIN], { DATA_DIR: dataDir, PORT: '0', ...env });
    started.push(command);
    return command;
  };
  const inUse = () =>
    new RegExp(`^Opening .+\n${dataDir} is in use by another process of the Plant Store\\.\n$`);
  const curlOf = async (service: Command) => (await service.waitFor(/^curl .*$/m))[0];
  const run = async (curl: string) => (await promisify(execFile)('sh', ['-c', curl])).stdout;

  it('prints the address of Swagger UI and a curl line that works as it stands; plants outlive a restart', async () => {
    const first = start();
    expect(await run(`${await curlOf(first)} -sS`)).toBe(
      '{"name":"Equisetum fluviatile","tag":"Equisetum"}',
    );
    const [, docs] = await first.waitFor(/Swagger UI +(\S+)/);
    expect((await fetch(docs!)).status).toBe(200);
    first.process.kill('SIGTERM');
    expect(await first.exit()).toBe(0);

    const second = start();
    const other = (await curlOf(second)).replace('"tag": "Equisetum"', '"tag": "other"');
    expect(JSON.parse(await run(`${other} -sS`))).toMatchObject({ error: 40006 });
  });

  it.each(['1', '2'])(
    'writes nothing but JSON to a standard output that is no terminal, with WEB_CONCURRENCY=%s',
    async (workers) => {
      const service = start({ WEB_CONCURRENCY: workers });
      const [, url] = await service.waitFor(/listens on (\S+)/);
      await fetch(`${url}/health/live`);
      service.process.kill('SIGTERM');
      expect(await service.exit()).toBe(0);
      const lines = service.stdout.trimEnd().split('\n');
      expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
        expect.objectContaining({ route: '/health/live', status: 200 }),
      );
      expect(service.stderr).toMatch(/Token +plantstore_[0-9A-Za-z]{49}\n/);
    },
  );

  it('stops at once at the second signal', async () => {
    const service = start({ SHUTDOWN_DELAY_MS: '600000' });
    const [, url] = await service.waitFor(/listens on (\S+)/);
    service.process.kill('SIGTERM');
    while ((await fetch(`${url}/health/ready`)).status === 200);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(1);
  });

  it('makes the data folder if there is none', async () => {
    await start({ DATA_DIR: join(dataDir, 'a', 'b') }).waitFor(/listens on/);
  });

  it('survives kill -9 and starts again on the same data', async () => {
    const first = start();
    await run(`${await curlOf(first)} -sS`);
    first.process.kill('SIGKILL');
    await first.exit();
    const second = start();
    const other = (await curlOf(second)).replace('"tag": "Equisetum"', '"tag": "other"');
    expect(JSON.parse(await run(`${other} -sS`))).toMatchObject({ error: 40006 });
  });

  it('"token create" prints a token, alone, that the running service accepts', async () => {
    const service = start();
    const [, url] = await service.waitFor(/listens on (\S+)/);
    const create = runCommand([CLI, 'token', 'create', 'greenhouse'], { DATA_DIR: dataDir });
    expect(await create.exit()).toBe(0);
    expect(create.stderr).toBe('');
    expect(create.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    const answer = await fetch(`${url}/plants`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${create.stdout.trim()}`,
        'content-type': 'application/json',
      },
      body: '{"id":1,"name":"a"}',
    });
    expect(answer.status).toBe(200);
  });

  it('a second service on the same data folder is refused in one line', async () => {
    await start().waitFor(/listens on/);
    const second = start();
    expect(await second.exit()).toBe(1);
    expect(second.stderr).toMatch(inUse());
  });

  it('of many that start at once on one data folder, one serves and the others are refused', async () => {
    const services = Array.from({ length: 4 }, () => start());
    const outcomes = await Promise.all(
      services.map((service) =>
        Promise.race([
          service.waitFor(/listens on/).then(
            () => 'serves',
            () => 'refused',
          ),
          service.exit().then(() => 'refused'),
        ]),
      ),
    );
    expect(outcomes.toSorted()).toEqual(['refused', 'refused', 'refused', 'serves']);
    const refused = services.filter((_, i) => outcomes[i] === 'refused');
    for (const service of refused) {
      expect(await service.exit()).toBe(1);
      expect(service.stderr).toMatch(inUse());
    }
  });

  it('the temporary folder of the system does not matter', async () => {
    await start().waitFor(/listens on/);
    const second = start({ TMPDIR: dataDir });
    expect(await second.exit()).toBe(1);
    expect(second.stderr).toContain('is in use');
    const create = runCommand([CLI, 'token', 'create', 'x'], {
      DATA_DIR: dataDir,
      TMPDIR: dataDir,
    });
    expect(await create.exit()).toBe(0);
  });

  it('a data folder with a long path works, too', async () => {
    const service = start({ DATA_DIR: join(dataDir, 'x'.repeat(120)) });
    expect(await run(`${await curlOf(service)} -sS`)).toContain('Equisetum');
  });

  it('an interrupted first start does no harm', async () => {
    const env = { DATA_DIR: join(dataDir, 'fresh') };
    const first = start(env);
    await first.waitFor(/Opening/);
    while (!existsSync(join(env.DATA_DIR, 'postgres.unfinished', 'PG_VERSION'))) {
      await new Promise(setImmediate);
    }
    first.process.kill('SIGKILL');
    await first.exit();
    await start(env).waitFor(/listens on/);
  });

  it('commands wait for each other where no service runs', async () => {
    const commands = Array.from({ length: 3 }, (_, i) =>
      runCommand([CLI, 'token', 'create', `name ${i}`], { DATA_DIR: dataDir }),
    );
    expect(await Promise.all(commands.map((command) => command.exit()))).toEqual([0, 0, 0]);
  });

  it('a service that starts beside a command waits for it', async () => {
    const command = runCommand([CLI, 'token', 'list'], { DATA_DIR: dataDir });
    await start().waitFor(/listens on/);
    expect(await command.exit()).toBe(0);
  });

  it('a port that is taken is one line', async () => {
    const other = createServer();
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const { port } = other.address() as AddressInfo;
    const service = start({ PORT: String(port) });
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(
      new RegExp(
        `^Opening .+\nThe address 127\\.0\\.0\\.1:${port} is taken by another program\\. Set PORT to a free one\\.\n$`,
      ),
    );
    other.close();
  });
});

describe('a start that cannot succeed', () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ['a bad setting', { PORT: 'hunter2' }, /^PORT must be a whole number from 0 to 65535\n$/],
    [
      'a data folder that cannot be made',
      { DATA_DIR: '/dev/null/data' },
      /^Opening .+\n\/dev\/null\/data cannot be written \(ENOTDIR\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder in a place where folders cannot be made',
      { DATA_DIR: '/proc/plants' },
      /^Opening .+\n\/proc\/plants cannot be written \(\w+\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a database that stays away',
      { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants', DATABASE_START_TIMEOUT_MS: '0' },
      /^The database did not answer within 0 ms at 127\.0\.0\.1:1\/plants: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    ],
  ];

  it.each(cases)('%s ends with one line and exit code 1', async (_kind, env, line) => {
    const service = runCommand([MAIN], env);
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(line);
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });

  it('a database that is away is tried again until it is given up', async () => {
    const service = runCommand([MAIN], {
      DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants',
      DATABASE_START_TIMEOUT_MS: '1500',
    });
    await service.waitFor(
      /Waiting for the database at 127\.0\.0\.1:1\/plants: connect ECONNREFUSED/,
    );
    expect(await service.exit()).toBe(1);
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });
});
