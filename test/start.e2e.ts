import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { runInProcess } from './setup/cli.js';
import { runCommand, type Command } from './setup/command.js';
import { makeDataDir } from './setup/data-dir.js';
import { isOnServer, openTestDatabase } from './setup/database.js';
import { until } from './setup/until.js';

const MAIN = 'dist/main.js';
const CLI = 'dist/cli.js';

const attempts: Command[] = [];

function attempt(...parameters: Parameters<typeof runCommand>): Command {
  const command = runCommand(...parameters);
  attempts.push(command);
  return command;
}

/** Standard error, but for the line that says what the service is about to open. */
function reasonOf(command: Command): string {
  return command.stderr.replace(/^Opening the embedded Postgres in .+ …\n/, '');
}

// A start that succeeds against expectation would go on for ever.
afterEach(() => {
  for (const { process } of attempts.splice(0)) process.kill('SIGKILL');
});

const inUse = (dataDir: string) =>
  new RegExp(`^Opening .+\n${dataDir} is in use by another process of the Plant Store\\.\n$`);
const urlOf = async (service: Command) => (await service.waitFor(/listens on (\S+)/))[1]!;
const curlOf = async (service: Command) => (await service.waitFor(/^curl .*$/m))[0];
const sh = async (line: string) => (await promisify(execFile)('sh', ['-c', line])).stdout;

/** Sends the plant of the curl line with another tag, which is refused if the plant is there. */
async function expectStored(service: Command): Promise<void> {
  const other = (await curlOf(service)).replace('"tag": "Equisetum"', '"tag": "other"');
  expect(JSON.parse(await sh(`${other} -sS`))).toMatchObject({ error: 40006 });
}

async function expectJsonLog(service: Command): Promise<void> {
  await fetch(`${await urlOf(service)}/health/live`);
  service.process.kill('SIGTERM');
  expect(await service.exit()).toBe(0);
  const lines = service.stdout.trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line) as object)).toContainEqual(
    expect.objectContaining({ route: '/health/live', status: 200 }),
  );
  expect(service.stderr).toMatch(/Token +plantstore_[0-9A-Za-z]{49}\n/);
}

describe('a service on the embedded database', () => {
  let dataDir: string;
  let service: Command;

  beforeAll(async () => {
    dataDir = await makeDataDir();
    service = runCommand([MAIN], { DATA_DIR: dataDir, PORT: '0', SHUTDOWN_DELAY_MS: '600000' });
    await urlOf(service);
  });
  afterAll(async () => {
    service.process.kill('SIGKILL');
    await service.exit();
    await rm(dataDir, { recursive: true });
  });

  it('prints the address of Swagger UI and a curl line that works as it stands', async () => {
    expect(await sh(`${await curlOf(service)} -sS`)).toBe(
      '{"name":"Equisetum fluviatile","tag":"Equisetum"}',
    );
    const [, docs] = await service.waitFor(/Swagger UI +(\S+)/);
    expect((await fetch(docs!)).status).toBe(200);
  });

  it.each([
    ['the same temporary folder', () => ({})],
    ['another temporary folder', () => ({ TMPDIR: dataDir })],
  ])('accepts a token that "token create" prints, alone, with %s', async (_folder, env) => {
    const create = runCommand([CLI, 'token', 'create', 'greenhouse'], {
      DATA_DIR: dataDir,
      ...env(),
    });
    expect(await create.exit()).toBe(0);
    expect(create.stderr).toBe('');
    expect(create.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    const response = await fetch(`${await urlOf(service)}/plants`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${create.stdout.trim()}`,
        'content-type': 'application/json',
      },
      body: '{"id":1,"name":"a"}',
    });
    expect(response.status).toBe(200);
  });

  it.each([
    ['the same temporary folder', () => ({})],
    ['another temporary folder', () => ({ TMPDIR: dataDir })],
  ])('refuses a second service on its data folder in one line, with %s', async (_folder, env) => {
    const second = attempt([MAIN], { DATA_DIR: dataDir, PORT: '0', ...env() });
    expect(await second.exit()).toBe(1);
    expect(second.stderr).toMatch(inUse(dataDir));
  });

  it('stops at once at the second signal', async () => {
    const url = await urlOf(service);
    service.process.kill('SIGTERM');
    await until(async () => (await fetch(`${url}/health/ready`)).status !== 200);
    service.process.kill('SIGTERM');
    expect(await service.exit()).toBe(1);
  });
});

describe('started on the embedded database', () => {
  let dataDir: string;
  let started: Command[];

  beforeEach(async () => {
    dataDir = await makeDataDir();
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

  it('keeps plants over a restart and over kill -9, and writes nothing but JSON to a standard output that is no terminal', async () => {
    const first = start();
    await sh(`${await curlOf(first)} -sS`);
    await expectJsonLog(first);
    const second = start();
    await expectStored(second);
    second.process.kill('SIGKILL');
    await second.exit();
    await expectStored(start());
  });

  it('writes nothing but JSON to a standard output that is no terminal, with two workers', async () => {
    await expectJsonLog(start({ WEB_CONCURRENCY: '2' }));
  });

  it('makes its data folder, with a long path, and an interrupted first start does no harm', async () => {
    const env = { DATA_DIR: join(dataDir, 'a', 'x'.repeat(120)) };
    const first = start(env);
    await first.waitFor(/Opening/);
    await until(() => existsSync(join(env.DATA_DIR, 'postgres.unfinished', 'PG_VERSION')));
    first.process.kill('SIGKILL');
    await first.exit();
    expect(await sh(`${await curlOf(start(env))} -sS`)).toContain('Equisetum');
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
      expect(service.stderr).toMatch(inUse(dataDir));
    }
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
});

describe('a start that cannot succeed', () => {
  /** The service and a command read the same settings; not all of them need a process. */
  type Start = 'service' | 'command';
  const cases: [string, Start[], Record<string, string>, RegExp][] = [
    [
      'a bad setting',
      ['service', 'command'],
      { PORT: 'hunter2' },
      /^PORT must be a whole number from 0 to 65535\n$/,
    ],
    [
      'a data folder that cannot be made',
      ['service', 'command'],
      { DATA_DIR: '/dev/null/data' },
      /^\/dev\/null\/data cannot be written \(ENOTDIR\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder in a place where folders cannot be made',
      ['command'],
      { DATA_DIR: '/proc/plants' },
      /^\/proc\/plants cannot be written \(\w+\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder that is a file',
      ['command'],
      { DATA_DIR: '/dev/null' },
      /^\/dev\/null is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a host of 5,000 characters',
      ['command'],
      { HOST: 'h'.repeat(5000) },
      /^HOST must be a host name or an IP address, such as 127\.0\.0\.1, ::1 or 0\.0\.0\.0\n$/,
    ],
    ['a host with a space', ['command'], { HOST: 'my host' }, /^HOST must be .*\n$/],
    [
      'a pool below 1, which says nothing about WEB_CONCURRENCY',
      ['command'],
      { DATABASE_POOL_SIZE: '-1' },
      /^DATABASE_POOL_SIZE must be a whole number from 1 to 1000\n$/,
    ],
    [
      'a % that escapes nothing',
      ['command'],
      { DATABASE_URL: 'postgres://me:%ZZhunter2@127.0.0.1:1/plants' },
      /^DATABASE_URL must have special characters .* escaped: .*% as %25\n$/,
    ],
    [
      'a password with a slash',
      ['service', 'command'],
      { DATABASE_URL: 'postgres://me:5432/hunter2@127.0.0.1:1/plants' },
      /^DATABASE_URL must have special characters .* escaped: \/ as %2F.*\n$/,
    ],
    [
      'a certificate that is not there',
      ['command'],
      { DATABASE_URL: 'postgres://me@127.0.0.1:1/plants?sslrootcert=/nowhere' },
      /^DATABASE_URL names a file in sslrootcert, sslcert or sslkey that cannot be read \(ENOENT\)\n$/,
    ],
    [
      'a database that stays away',
      ['service'],
      { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants', DATABASE_START_TIMEOUT_MS: '0' },
      /^The database at 127\.0\.0\.1:1\/plants could not be used within 0 ms: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    ],
    [
      'a database with sslmode=require that stays away',
      ['service'],
      {
        DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants?sslmode=require',
        DATABASE_START_TIMEOUT_MS: '0',
      },
      /^The database at 127\.0\.0\.1:1\/plants could not be used within 0 ms: .*\n$/,
    ],
  ];

  const casesOf = (start: Start) => cases.filter(([, starts]) => starts.includes(start));

  it.each(casesOf('service'))(
    '%s ends the service with one line and exit code 1',
    async (_kind, _starts, env, line) => {
      const service = attempt([MAIN], { PORT: '0', ...env });
      expect(await service.exit()).toBe(1);
      expect(reasonOf(service)).toMatch(line);
      expect(service.stdout + service.stderr).not.toContain('hunter2');
    },
  );

  it.each(casesOf('command'))(
    '%s ends a command with one line and exit code 1',
    async (_kind, _starts, env, line) => {
      const command = await runInProcess(['migrate'], env);
      expect(command).toMatchObject({ exitCode: 1, stdout: '' });
      expect(command.stderr).toMatch(line);
      expect(command.stderr).not.toContain('hunter2');
    },
  );

  it('a database that is away is tried again until it is given up', async () => {
    const service = attempt([MAIN], {
      PORT: '0',
      DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants',
      DATABASE_START_TIMEOUT_MS: '3000',
    });
    await service.waitFor(
      /Waiting for the database at 127\.0\.0\.1:1\/plants: connect ECONNREFUSED/,
    );
    expect(await service.exit()).toBe(1);
    expect(service.stderr).toMatch(
      /^The database at 127\.0\.0\.1:1\/plants could not be used within 3000 ms: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    );
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });

  it.each(['1', '2'])(
    'a port that is taken, with %s workers, is one line, before the database is opened',
    async (workers) => {
      const other = createServer();
      await once(other.listen(0, '127.0.0.1'), 'listening');
      const { port } = other.address() as AddressInfo;
      const dataDir = join(tmpdir(), `plant-store-never-made-${port}`);
      const service = attempt([MAIN], {
        PORT: String(port),
        DATA_DIR: dataDir,
        WEB_CONCURRENCY: workers,
      });
      expect(await service.exit()).toBe(1);
      expect(service.stderr).toBe(
        `The address 127.0.0.1:${port} is taken by another program. Set PORT to a free one.\n`,
      );
      expect(service.stdout).toBe('');
      expect(existsSync(dataDir)).toBe(false);
      other.close();
    },
  );

  it.each([[[MAIN]], [[CLI, 'token', 'list']]])(
    'a .env that is a folder is one line (%j)',
    async (args) => {
      const dir = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
      await mkdir(join(dir, '.env'));
      const command = attempt(args, { PORT: '0' }, dir);
      expect(await command.exit()).toBe(1);
      expect(command.stderr).toBe(
        `${join(dir, '.env')} must be a file that this user can read. Move away what is there, or mend it.\n`,
      );
      await rm(dir, { recursive: true });
    },
  );

  it('a .env whose value would be cut at a # names the variable, and nothing of the value', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
    await writeFile(
      join(dir, '.env'),
      'PORT=0 # any\nDATABASE_URL=postgres://me:2024#hunter2@db/x\n',
    );
    const command = attempt([MAIN], {}, dir);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe(
      `DATABASE_URL in ${join(dir, '.env')} would be cut at a #: put its value in quotes\n`,
    );
    await rm(dir, { recursive: true });
  });

  it('a database that stays read-only is called read-only', async () => {
    const database = await openTestDatabase();
    // All connections to the embedded database share one session.
    if (!isOnServer) await database.query('SET default_transaction_read_only = on');
    const url = isOnServer
      ? database.url.replace('options=', 'options=-c+default_transaction_read_only%3Don+')
      : database.url;
    const env = { PORT: '0', DATABASE_URL: url, DATABASE_START_TIMEOUT_MS: '3000' };
    const service = attempt([MAIN], env);
    const command = await runInProcess(['token', 'list'], env);
    const outcomes = [
      { exitCode: await service.exit(), stdout: service.stdout, stderr: service.stderr },
      command,
    ];
    for (const { exitCode, stdout, stderr } of outcomes) {
      expect(exitCode).toBe(1);
      expect(`${stdout}${stderr}`).toContain('Waiting for the database');
      expect(stderr.trimEnd().split('\n').at(-1)).toMatch(
        /^The database at .* could not be used within 3000 ms: .*\(25006\); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary$/,
      );
    }
    await database.close();
  });
});

describe('a data folder that cannot be used', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await makeDataDir();
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  /** Fails in the same way, however often: no start mends or harms what another one found. */
  async function expectOneLine(line: string) {
    const service = attempt([MAIN], { PORT: '0', DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toBe(`${line}\n`);
    expect(await runInProcess(['token', 'list'], { DATA_DIR: dataDir })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `${line}\n`,
    });
  }

  const damage: [string, (postgres: string) => Promise<unknown>][] = [
    ['without PG_VERSION', (postgres) => rm(join(postgres, 'PG_VERSION'))],
    ['of another version', (postgres) => writeFile(join(postgres, 'PG_VERSION'), '15\n')],
    ['with half a pg_control', (postgres) => truncate(join(postgres, 'global/pg_control'), 100)],
    [
      'that is empty',
      async (postgres) => {
        await rm(postgres, { recursive: true });
        await mkdir(postgres);
      },
    ],
    [
      'that is a file',
      async (postgres) => {
        await rm(postgres, { recursive: true });
        await writeFile(postgres, 'x');
      },
    ],
  ];

  it.each(damage)('a database %s is one line, and is left alone', async (_kind, spoil) => {
    const postgres = join(dataDir, 'postgres');
    await spoil(postgres);
    await expectOneLine(
      `${postgres} is damaged, or of another version of Postgres. Restore a copy of it, or move it away to start with an empty database.`,
    );
  });

  it('a database whose catalog is damaged is one line that names the folder', async () => {
    const tables = join(dataDir, 'postgres/base/5');
    // pg_attrdef_adrelid_adnum_index, which nothing reads before the migrations.
    await writeFile(join(tables, '2656'), Buffer.alloc(16_384, 0xaa));
    await expectOneLine(
      `The database at ${dataDir} cannot be used: invalid page in block 0 of relation "base/5/2656" (XX001); its files are damaged, restore a copy of them`,
    );
  });

  it.each([
    ['a folder', (lock: string) => mkdir(lock), 'unable to open database file'],
    [
      'a file of another program',
      (lock: string) => writeFile(lock, 'not a lock, and long enough to be looked at'),
      'file is not a database',
    ],
  ])('a lock that is %s is one line', async (_kind, make, reason) => {
    const lock = join(dataDir, 'lock');
    await make(lock);
    await expectOneLine(
      `${lock} cannot be used as the lock of the Plant Store (${reason}). Move it away, or set DATA_DIR to another folder.`,
    );
  });

  it('a socket that is a folder is one line', async () => {
    await mkdir(join(dataDir, '.s.PGSQL.5432'));
    const service = attempt([MAIN], { PORT: '0', DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(
      /^The embedded Postgres cannot start in .*\.s\.PGSQL\.5432\. Mend that, or set DATA_DIR to another folder\.\n$/,
    );
  });

  it('a temporary folder that is not there is one line', async () => {
    const list = attempt([CLI, 'token', 'list'], { DATA_DIR: dataDir, TMPDIR: '/nowhere' });
    expect(await list.exit()).toBe(1);
    expect(list.stderr).toBe(
      '/nowhere cannot be written (ENOENT). Set TMPDIR to a folder of your own.\n',
    );
  });
});
