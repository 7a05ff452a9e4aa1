import { execFile } from 'node:child_process';
import type { Stats } from 'node:fs';
import {
  chmod,
  chown,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { findPostgresPackage } from '../../src/database/embedded/postgres-package.js';
import { canMountDisk, mountSmallDisk, type SmallDisk } from '../setup/process/disk.js';
import { useResources } from '../setup/jest/resources.js';
import { attempt, attemptProgram, reasonOf } from '../setup/process/attempts.js';
import { runInProcess } from '../setup/service/cli.js';
import { NODE, ROOT } from '../setup/process/command.js';
import { replaceWaits, waitForTimer } from '../setup/time/held-waits.js';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';

const CLI = 'dist/cli.js';

const run = promisify(execFile);

const resources = useResources();

describe('a data folder that cannot be used', () => {
  let original: string;
  let dataDir: string;

  beforeAll(async () => {
    // To copy a database takes a fifth of the time that a first start needs to unpack it.
    original = await makeDataDir();
    const postgres = join(original, 'postgres');
    await mkdir(postgres, { mode: 0o700 });
    const archive = join(findPostgresPackage(), 'new-cluster.tgz');
    await run('tar', ['-xzf', archive, '-C', postgres, '--no-same-owner']);
  });
  afterAll(() => removeDataDir(original));
  beforeEach(async () => {
    dataDir = await makeDataDir();
    await run('cp', ['-a', join(original, 'postgres'), dataDir]);
  });
  afterEach(() => removeDataDir(dataDir));

  /** Expects the same message twice: a start that fails neither repairs nor damages the folder. */
  async function expectOneLine(line: string) {
    for (const words of [['migrate'], ['token', 'list']]) {
      expect(await runInProcess(words, { DATA_DIR: dataDir })).toEqual({
        exitCode: 1,
        stdout: '',
        stderr: `${line}\n`,
      });
    }
  }

  const cannotStart = (postgres: string, reason: string) =>
    `The embedded Postgres cannot start in ${postgres}: ${reason}. Correct that, restore a copy of the folder or move it away, or set DATABASE_URL to a Postgres server. docs/database.md says more.`;

  const cannotRun = (postgres: string, reason: string) =>
    `The embedded Postgres cannot start in ${postgres}: ${reason}. Correct that, or set DATABASE_URL to a Postgres server. docs/database.md says more.`;

  /** Expects the words of Postgres, which depend on its user. */
  async function expectNoDatabase() {
    const { exitCode, stderr } = await runInProcess(['migrate'], { DATA_DIR: dataDir });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^The embedded Postgres cannot start in \S+\/postgres: .+\.\n$/);
  }

  const isOpen = (dataDir: string) =>
    `${dataDir} is open to other users, and has other files than a database. Set DATA_DIR to a folder of your own; if it is one, close it: chmod 700 ${dataDir}`;

  const damage: [
    kind: string,
    spoil: (postgres: string) => Promise<unknown>,
    reason: (postgres: string) => string,
  ][] = [
    [
      'of another version',
      (postgres) => writeFile(join(postgres, 'PG_VERSION'), '15\n'),
      () =>
        'database files are incompatible with server (The data directory was initialized by PostgreSQL version 15, which is not compatible with this version 18.4)',
    ],
    [
      'with a pg_control that is cut short',
      (postgres) => truncate(join(postgres, 'global/pg_control'), 100),
      () => 'could not read file "global/pg_control": read 100 of 296',
    ],
    [
      'with a mistake in postgresql.conf',
      (postgres) => writeFile(join(postgres, 'postgresql.conf'), 'work_men = 8MB\n'),
      (postgres) =>
        `unrecognized configuration parameter "work_men" in file "${postgres}/postgresql.conf" line 1`,
    ],
    [
      'with a mistake in pg_hba.conf',
      (postgres) => writeFile(join(postgres, 'pg_hba.conf'), 'lokal all all trust\n'),
      () => 'invalid connection type "lokal"',
    ],
  ];

  it.each(damage)(
    'a database %s: the message is one line, and the files stay as they are',
    async (_kind, spoil, reason) => {
      const postgres = join(dataDir, 'postgres');
      await spoil(postgres);
      await expectOneLine(cannotStart(postgres, reason(postgres)));
    },
  );

  it('a database that is a file: the message is one line', async () => {
    const postgres = join(dataDir, 'postgres');
    await rm(postgres, { recursive: true });
    await writeFile(postgres, 'x');
    await expectNoDatabase();
  });

  it('a database whose catalog is damaged: the message is one line that names the folder', async () => {
    const tables = join(dataDir, 'postgres/base/5');
    // pg_attrdef_adrelid_adnum_index, which nothing reads before the migrations.
    await writeFile(join(tables, '2656'), Buffer.alloc(16_384, 0xaa));
    await expectOneLine(
      `The database at ${dataDir} cannot be used: invalid page in block 0 of relation "base/5/2656" (XX001); its files are damaged, restore a backup`,
    );
  });

  it('a socket that is a folder: the message is one line', async () => {
    // The port of a command without a service.
    await mkdir(join(dataDir, 'postgres/.s.PGSQL.5433'));
    await expectOneLine(
      cannotStart(join(dataDir, 'postgres'), 'could not create any Unix-domain sockets'),
    );
  });

  it.each([
    [30_000, 'by default', {}],
    [10_000, 'at least', { DATABASE_START_TIMEOUT_MS: '9999' }],
  ])(
    'a Postgres that accepts no connections in %i ms, %s, is ended, and the message says what to do',
    async (timeout, _, env) => {
      const restoreWaits = replaceWaits((milliseconds) =>
        waitForTimer(milliseconds === timeout ? 0 : milliseconds),
      );
      resources.defer(restoreWaits);
      const { exitCode, stderr } = await runInProcess(['migrate'], { DATA_DIR: dataDir, ...env });
      expect(exitCode).toBe(1);
      expect(stderr).toMatch(
        new RegExp(
          `accepts no connections after ${timeout} ms\\. Its last message: .+\\. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time\\.\n$`,
        ),
      );
      restoreWaits();
      expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
    },
  );

  const user = process.getuid!();
  // The rights of files do not restrict the superuser.
  const asAnotherUser = user === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : [];
  const startAsAnotherUser = (dataDir: string, ...words: string[]) => {
    const [program, ...args] = [...asAnotherUser, ...NODE, join(ROOT, CLI), ...words];
    return attemptProgram(resources, program!, args, { DATA_DIR: dataDir });
  };

  it('a data folder that this user cannot write: the message names it', async () => {
    if (user === 0) await run('chown', ['-R', '65534', dataDir]);
    // Root owns the folder above, where this user cannot make one.
    const path = join(dataDir, 'closed', 'data');
    await mkdir(join(dataDir, 'closed'), { mode: 0o555 });
    const service = startAsAnotherUser(path, 'migrate');
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(
      /^\S+\/closed\/data cannot be used: this user has no permission\. Set DATA_DIR to a folder of your own\.\n$/,
    );
  });

  it('a file of the database that this user cannot read: the message names it', async () => {
    if (user === 0) await run('chown', ['-R', '65534', dataDir]);
    const path = join(dataDir, 'postgres/global/pg_control');
    await chmod(path, 0o200);
    const service = startAsAnotherUser(dataDir, 'migrate');
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(
      /^The embedded Postgres cannot start in .* could not open file ".*\/global\/pg_control": Permission denied\. .*\n$/,
    );
  });

  // Only root can give folders to other users.
  const itAsRoot = user === 0 ? it : it.skip;

  itAsRoot('the data folder belongs to another user: the message names both', async () => {
    await chown(dataDir, 12_345, 12_345);
    await expectOneLine(
      `${dataDir} belongs to another user (uid 12345). Start as that user, or stop its service and give it to yours (chown -R ${process.geteuid!()} ${dataDir}), or set DATA_DIR to a folder of your own.`,
    );
  });

  it.each([
    ['without PG_VERSION', (postgres: string) => rm(join(postgres, 'PG_VERSION'))],
    [
      'that is empty',
      async (postgres: string) => {
        await rm(postgres, { recursive: true });
        await mkdir(postgres);
      },
    ],
  ])('a folder %s, perhaps of another program, is named and not changed', async (_kind, spoil) => {
    const postgres = join(dataDir, 'postgres');
    await spoil(postgres);
    await expectNoDatabase();
    for (const path of [dataDir, postgres]) await chmod(path, 0o755);
    const before = [await stat(dataDir), await stat(postgres)];
    await expectOneLine(isOpen(dataDir));
    const facts = ({ uid, mode }: Stats) => [uid, mode];
    const after = [await stat(dataDir), await stat(postgres)];
    expect(after.map(facts)).toEqual(before.map(facts));
  });

  it('an open data folder is closed to all other users', async () => {
    await chmod(dataDir, 0o755);
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
    expect(await stat(dataDir)).toMatchObject({ mode: 0o40700 });
  });

  itAsRoot('root leaves a volume open to the users of its containers', async () => {
    await chmod(dataDir, 0o1777);
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
    expect(await stat(dataDir)).toMatchObject({ uid: 0, mode: 0o41777 });
  });

  it('a database that was there and is missing is not replaced by an empty one', async () => {
    await rm(join(dataDir, 'postgres'), { recursive: true });
    await writeFile(join(dataDir, 'development-token'), '');
    const { exitCode, stderr } = await runInProcess(['migrate'], { DATA_DIR: dataDir });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/\/postgres is missing, and .+development-token shows that there was/);
    expect(await readdir(dataDir)).toEqual(['development-token']);
  });

  it('an open data folder with other files is not closed, but refused', async () => {
    await rename(join(dataDir, 'postgres'), join(dataDir, 'theirs'));
    await chmod(dataDir, 0o755);
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({
      exitCode: 1,
      stderr: `${isOpen(dataDir)}\n`,
    });
    expect(await stat(dataDir)).toMatchObject({ mode: 0o40755 });
  });

  /** Makes a folder of all programs of the system but these. */
  async function makePath(...missing: string[]): Promise<string> {
    const programs = join(dataDir, 'programs');
    await mkdir(programs);
    for (const folder of ['/bin', '/usr/bin']) {
      for (const program of await readdir(folder)) {
        // The two folders may be one.
        await symlink(join(folder, program), join(programs, program)).catch(() => undefined);
      }
    }
    for (const program of missing) await rm(join(programs, program));
    return programs;
  }

  it.each([
    ['tar', 'tar'],
    ['gzip', 'gzip'],
    ['flock', 'util-linux'],
    ...(user === 0 ? [['setpriv', 'util-linux']] : []),
  ])('the program %s is missing: it is named with its package', async (program, name) => {
    const PATH = await makePath(program);
    const env = { DATA_DIR: join(dataDir, 'new'), PATH };
    const command = attempt(resources, [CLI, 'migrate'], env);
    expect(await command.exit()).toBe(1);
    expect(reasonOf(command)).toBe(
      `The embedded Postgres needs the program ${program} (package ${name}). Install that, or set DATABASE_URL to a Postgres server.\n`,
    );
  });

  it('a lock that cannot be had for another reason than another service: the message says which', async () => {
    const PATH = await makePath('flock');
    const text = '#!/bin/sh\necho "flock: 9: No locks available" >&2\nexit 71\n';
    await writeFile(join(PATH, 'flock'), text, { mode: 0o755 });
    const command = attempt(resources, [CLI, 'migrate'], { DATA_DIR: dataDir, PATH });
    expect(await command.exit()).toBe(1);
    expect(reasonOf(command)).toBe(
      `${cannotRun(join(dataDir, 'postgres'), 'flock: 9: No locks available')}\n`,
    );
  });

  itAsRoot('root may lack the rights to give a folder away if that is done', async () => {
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
    const command = ['--bounding-set=-chown,-fowner', ...NODE, join(ROOT, CLI), 'migrate'];
    const migrate = attemptProgram(resources, 'setpriv', command, { DATA_DIR: dataDir });
    expect(await migrate.exit()).toBe(0);
  });

  itAsRoot('root removes what an interrupted start of another user left', async () => {
    const postgres = join(dataDir, 'postgres');
    await rm(postgres, { recursive: true });
    await mkdir(join(`${postgres}.unfinished`, 'global'), { recursive: true });
    for (const path of ['', '/global'])
      await chown(`${postgres}.unfinished${path}`, 12_345, 12_345);
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
    expect(await readdir(dataDir)).not.toContain('postgres.unfinished');
  });

  itAsRoot('an open folder of the database is closed, also that of root', async () => {
    const postgres = join(dataDir, 'postgres');
    for (const uid of [0, 65_534]) {
      await chown(postgres, uid, uid);
      await chmod(postgres, 0o755);
      expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
      expect(await stat(postgres)).toMatchObject({ uid: 65_534, mode: 0o40700 });
    }
  });

  itAsRoot(
    'root changes no folder that a link names, which another user may have made',
    async () => {
      const [postgres, elsewhere] = [join(dataDir, 'postgres'), join(dataDir, 'elsewhere')];
      await rename(postgres, elsewhere);
      await symlink('elsewhere', postgres);
      await run('chown', ['-R', '65534', elsewhere]);
      await chmod(elsewhere, 0o750);
      expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toMatchObject({ exitCode: 0 });
      expect(await stat(elsewhere)).toMatchObject({ uid: 65_534, mode: 0o40750 });
    },
  );

  itAsRoot('root may not give the database to another user: the message says so', async () => {
    const service = attemptProgram(
      resources,
      'setpriv',
      ['--bounding-set=-chown', ...NODE, join(ROOT, CLI), 'migrate'],
      { DATA_DIR: dataDir },
    );
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toBe(
      `${cannotRun(join(dataDir, 'postgres'), 'root may not give the folder to the user nobody here: start as an ordinary user')}\n`,
    );
    expect(await stat(join(dataDir, 'postgres'))).toMatchObject({ uid: 0 });
  });

  itAsRoot('root may not change the user: the message says what to do', async () => {
    const path = join(dataDir, 'new');
    const [program, ...args] = ['setpriv', '--bounding-set=-all', '--inh-caps=-all'] as const;
    const command = [...args, ...NODE, join(ROOT, CLI), 'migrate'];
    const service = attemptProgram(resources, program, command, { DATA_DIR: path });
    expect(await service.exit()).toBe(1);
    expect(reasonOf(service)).toMatch(/start as an ordinary user/);
  });

  itAsRoot('the folder of the database belongs to another user: Postgres says so', async () => {
    const postgres = join(dataDir, 'postgres');
    await chown(postgres, 12_345, 12_345);
    await expectOneLine(cannotStart(postgres, `data directory "${postgres}" has wrong ownership`));
  });

  itAsRoot(
    'a command does not say that a folder contains no database which is closed to its user',
    async () => {
      const command = startAsAnotherUser(dataDir, 'plants', 'export');
      expect(await command.exit()).toBe(1);
      expect(command.stderr).toContain(`${dataDir} belongs to another user (uid 0).`);
    },
  );
});

((await canMountDisk()) ? describe : describe.skip)('a full disk', () => {
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
    expect(await runInProcess(['migrate'], { DATA_DIR: dataDir })).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.\n`,
    });
    expect(await readdir(dataDir)).toEqual([]);
  });
});
