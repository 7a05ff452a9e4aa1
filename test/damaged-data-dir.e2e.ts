import { execFile } from 'node:child_process';
import { chmod, cp, mkdir, rm, truncate, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { mountSmallDisk, type SmallDisk } from './faults/disk.js';
import { attempt, attemptProgram, endAttempts, reasonOf } from './setup/attempts.js';
import { runInProcess } from './setup/cli.js';
import { ROOT } from './setup/command.js';
import { makeDataDir } from './setup/data-dir.js';

const MAIN = 'dist/main.js';
const CLI = 'dist/cli.js';

afterEach(endAttempts);

describe('a data folder that cannot be used', () => {
  let dataDir: string;

  beforeEach(async () => {
    dataDir = await makeDataDir();
  });
  afterEach(() => rm(dataDir, { recursive: true }));

  /** Expects the same message from two programs: a start that fails neither repairs nor damages the folder. */
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
    [
      'with a pg_control that is cut short',
      (postgres) => truncate(join(postgres, 'global/pg_control'), 100),
    ],
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

  it.each(damage)(
    'a database %s: the message is one line, and the files stay as they are',
    async (_kind, spoil) => {
      const postgres = join(dataDir, 'postgres');
      await spoil(postgres);
      await expectOneLine(
        `${postgres} is damaged, or of another version of Postgres. Restore a copy of it, or move it away to start with an empty database.`,
      );
    },
  );

  it('a database whose catalog is damaged: the message is one line that names the folder', async () => {
    const tables = join(dataDir, 'postgres/base/5');
    // pg_attrdef_adrelid_adnum_index, which nothing reads before the migrations.
    await writeFile(join(tables, '2656'), Buffer.alloc(16_384, 0xaa));
    await expectOneLine(
      `The database at ${dataDir} cannot be used: invalid page in block 0 of relation "base/5/2656" (XX001); its files are damaged, restore a backup`,
    );
  });

  it.each([
    ['a folder', (lock: string) => mkdir(lock), 'unable to open database file'],
    [
      'a file of another program',
      (lock: string) => writeFile(lock, 'not a lock, and long enough to be looked at'),
      'file is not a database',
    ],
  ])('a lock that is %s: the message is one line', async (_kind, make, reason) => {
    const lock = join(dataDir, 'lock');
    await make(lock);
    await expectOneLine(
      `${lock} cannot be used as the lock of the Plant Store (${reason}). Move it away, or set DATA_DIR to another folder.`,
    );
  });

  it('a socket that is a folder: the message is one line', async () => {
    await mkdir(join(dataDir, '.s.PGSQL.5432'));
    const service = attempt([MAIN], { PORT: '0', DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(
      /^The embedded Postgres cannot start in .*\.s\.PGSQL\.5432\. Fix that, or set DATA_DIR to another folder\.\n$/,
    );
  });

  it('a temporary folder that does not exist: the message is one line', async () => {
    const list = attempt([CLI, 'token', 'list'], { DATA_DIR: dataDir, TMPDIR: '/nowhere' });
    expect(await list.exit()).toBe(1);
    expect(list.stderr).toBe(
      '/nowhere cannot be written (ENOENT). Set TMPDIR to a folder of your own.\n',
    );
  });

  const user = process.getuid!();
  // The rights of files do not restrict the superuser.
  const asAnotherUser = user === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  const notOwned =
    'cannot be read and written (EACCES). The folder and all files in it must belong to this user.';
  it.each([
    ['a file that this user cannot write', 'postgres/global/pg_control', 0o400, notOwned],
    ['a folder that this user cannot write', 'postgres', 0o500, notOwned],
    [
      'a data folder that this user cannot write',
      '',
      0o500,
      'cannot be written (EACCES). Set DATA_DIR to a folder of your own.',
    ],
  ])('%s: the message names it', async (_kind, file, mode, message) => {
    await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
    if (user === 0) await promisify(execFile)('chown', ['-R', '65534', dataDir]);
    const path = resolve(dataDir, file);
    await chmod(path, mode);
    const [program, ...args] = [...asAnotherUser, process.execPath, join(ROOT, MAIN)];
    // Coverage is off, because the other user cannot write to its folder.
    const env = { PORT: '0', DATA_DIR: dataDir, NODE_V8_COVERAGE: '' };
    const service = attemptProgram(program, args, env);
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toBe(`${path} ${message}\n`);
    await chmod(path, 0o700);
  });
});

const probe = await mountSmallDisk('1m');
await probe?.close();
(probe === undefined ? describe.skip : describe)('a full disk', () => {
  let disk: SmallDisk;

  beforeAll(async () => {
    disk = (await mountSmallDisk('20m'))!;
  });
  afterAll(() => disk.close());

  it.each([
    ['without room for a database', () => Promise.resolve()],
    ['without a free byte', () => disk.fill()],
  ])('%s: the message says so', async (_kind, prepare) => {
    const dataDir = join(disk.folder, 'data');
    await prepare();
    const service = attempt([MAIN], { PORT: '0', DATA_DIR: dataDir });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toBe(
      `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.\n`,
    );
  });
});
