import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { createServer, type AddressInfo } from 'node:net';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { runCommand, type Command } from './setup/command.js';
import { isOnServer, openTestDatabase } from './setup/database.js';

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
});

/** Ways to start on a database: the service, and a command. */
const STARTS = [[MAIN], [CLI, 'token', 'list']];

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

describe('a start that cannot succeed', () => {
  const cases: [string, Record<string, string>, RegExp][] = [
    ['a bad setting', { PORT: 'hunter2' }, /^PORT must be a whole number from 0 to 65535\n$/],
    [
      'a data folder that cannot be made',
      { DATA_DIR: '/dev/null/data' },
      /^\/dev\/null\/data cannot be written \(ENOTDIR\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder in a place where folders cannot be made',
      { DATA_DIR: '/proc/plants' },
      /^\/proc\/plants cannot be written \(\w+\)\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a data folder that is a file',
      { DATA_DIR: '/dev/null' },
      /^\/dev\/null is not a folder\. Set DATA_DIR to a folder of your own\.\n$/,
    ],
    [
      'a host of 5,000 characters',
      { HOST: 'h'.repeat(5000) },
      /^HOST must be a host name or an IP address, such as 127\.0\.0\.1, ::1 or 0\.0\.0\.0\n$/,
    ],
    ['a host with a space', { HOST: 'my host' }, /^HOST must be .*\n$/],
    [
      'a pool below 1, which says nothing about WEB_CONCURRENCY',
      { DATABASE_POOL_SIZE: '-1' },
      /^DATABASE_POOL_SIZE must be a whole number from 1 to 1000\n$/,
    ],
    [
      'a % that escapes nothing',
      { DATABASE_URL: 'postgres://me:%ZZhunter2@127.0.0.1:1/plants' },
      /^DATABASE_URL must have special characters .* escaped: .*% as %25\n$/,
    ],
    [
      'a password with a slash',
      { DATABASE_URL: 'postgres://me:5432/hunter2@127.0.0.1:1/plants' },
      /^DATABASE_URL must have special characters .* escaped: \/ as %2F.*\n$/,
    ],
    [
      'a certificate that is not there',
      { DATABASE_URL: 'postgres://me@127.0.0.1:1/plants?sslrootcert=/nowhere' },
      /^DATABASE_URL names a file in sslrootcert, sslcert or sslkey that cannot be read \(ENOENT\)\n$/,
    ],
    [
      'a database that stays away',
      { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants', DATABASE_START_TIMEOUT_MS: '0' },
      /^The database at 127\.0\.0\.1:1\/plants could not be used within 0 ms: connect ECONNREFUSED 127\.0\.0\.1:1\n$/,
    ],
    [
      'a database with sslmode=require that stays away',
      {
        DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants?sslmode=require',
        DATABASE_START_TIMEOUT_MS: '0',
      },
      /^The database at 127\.0\.0\.1:1\/plants could not be used within 0 ms: .*\n$/,
    ],
  ];

  it.each(cases)('%s ends with one line and exit code 1', async (_kind, env, line) => {
    const service = attempt([MAIN], { PORT: '0', ...env });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(line);
    expect(service.stdout + service.stderr).not.toContain('hunter2');
  });

  it('a database that is away is tried again until it is given up', async () => {
    const service = attempt([MAIN], {
      PORT: '0',
      DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/plants',
      DATABASE_START_TIMEOUT_MS: '1500',
    });
    await service.waitFor(
      /Waiting for the database at 127\.0\.0\.1:1\/plants: connect ECONNREFUSED/,
    );
    expect(await service.exit()).toBe(1);
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

  it.each(STARTS)('a .env that is a folder is one line (%s)', async (...args) => {
    const dir = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
    await mkdir(join(dir, '.env'));
    const command = attempt(args, { PORT: '0' }, dir);
    expect(await command.exit()).toBe(1);
    expect(command.stderr).toBe(
      `${join(dir, '.env')} must be a file that this user can read. Move away what is there, or mend it.\n`,
    );
    await rm(dir, { recursive: true });
  });

  it.each(STARTS)('a database that stays read-only is called read-only (%s)', async (...args) => {
    const database = await openTestDatabase();
    // All connections to the embedded database share one session.
    if (!isOnServer) await database.query('SET default_transaction_read_only = on');
    const url = isOnServer
      ? database.url.replace('options=', 'options=-c+default_transaction_read_only%3Don+')
      : database.url;
    const command = attempt(args, {
      PORT: '0',
      DATABASE_URL: url,
      DATABASE_START_TIMEOUT_MS: '1500',
    });
    expect(await command.exit()).toBe(1);
    const waits = `${command.stdout}${command.stderr}`.match(/Waiting for the database/g);
    expect(waits).toHaveLength(1);
    expect(command.stderr.trimEnd().split('\n').at(-1)).toMatch(
      /^The database at .* could not be used within 1500 ms: .*\(25006\); it is read-only, as a standby or a former primary is, so DATABASE_URL must lead to the primary$/,
    );
    await database.close();
  });
});

describe('a data folder that cannot be used', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'plant-store-start-'));
    await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  /** Fails in the same way, however often: no start mends or harms what another one found. */
  async function expectOneLine(line: string) {
    for (const args of STARTS) {
      const command = attempt(args, { PORT: '0', DATA_DIR: dataDir });
      expect(await command.exit()).toBe(1);
      expect(reasonOf(command)).toBe(`${line}\n`);
    }
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
