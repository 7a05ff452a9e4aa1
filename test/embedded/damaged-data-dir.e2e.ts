import { execFile } from 'node:child_process';
import {
  chmod,
  chown,
  mkdir,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { findPostgresPackage } from '../../src/database/embedded/postgres-package.js';
import { canMountDisk, mountSmallDisk } from '../setup/process/disk.js';
import { useResources } from '../setup/jest/resources.js';
import { runInProcess } from '../setup/service/cli.js';
import { usePath } from '../setup/process/path.js';
import { replaceWaits, waitForTimer } from '../setup/time/held-waits.js';
import { makeDataDir, removeDataDir } from '../setup/service/data-dir.js';

const run = promisify(execFile);

const resources = useResources();

const isRoot = process.geteuid!() === 0;
/** Only root can give folders to other users. */
const itAsRoot = isRoot ? it : it.skip;

/** The user whom root lets run Postgres. */
const NOBODY = 65_534;

/** An empty cluster, to be copied. */
let original: string;

beforeAll(async () => {
  original = await makeDataDir();
  const postgres = join(original, 'postgres');
  await mkdir(postgres, { mode: 0o700 });
  const archive = join(findPostgresPackage(), 'new-cluster.tgz');
  await run('tar', ['-xzf', archive, '-C', postgres, '--no-same-owner']);
});
afterAll(() => removeDataDir(original));

async function copyCluster(): Promise<string> {
  const dataDir = await makeDataDir();
  await run('cp', ['-a', join(original, 'postgres'), dataDir]);
  return dataDir;
}

/** Starts Postgres, by a command that needs little more. */
const migrate = (dataDir: string, env: Record<string, string> = {}) =>
  runInProcess(['migrate'], { DATA_DIR: dataDir, ...env });

const OPENS = expect.objectContaining({ exitCode: 0 });

const failsWith = (line: string) => ({ exitCode: 1, stdout: '', stderr: `${line}\n` });

/** @param more what may help, beside the correction of the reason */
const cannotStart = (dataDir: string, reason: string, more = '') =>
  `The embedded Postgres cannot start in ${dataDir}/postgres: ${reason}. Correct that${more}, or set DATABASE_URL to a Postgres server. docs/database.md says more.`;

const RESTORE = ', restore a copy of the folder or move it away';

describe('a database that is damaged', () => {
  let dataDir: string;

  beforeAll(async () => {
    dataDir = await copyCluster();
  });
  afterAll(() => removeDataDir(dataDir));

  it.each([
    [
      'PG_VERSION',
      (path: string) => writeFile(path, '15\n'),
      () =>
        'database files are incompatible with server (The data directory was initialized by PostgreSQL version 15, which is not compatible with this version 18.4)',
    ],
    [
      'global/pg_control',
      (path: string) => truncate(path, 100),
      () => 'could not read file "global/pg_control": read 100 of 296',
    ],
    [
      'postgresql.conf',
      (path: string) => writeFile(path, 'work_men = 8MB\n'),
      (path: string) => `unrecognized configuration parameter "work_men" in file "${path}" line 1`,
    ],
    [
      'pg_hba.conf',
      (path: string) => writeFile(path, 'lokal all all trust\n'),
      () => 'invalid connection type "lokal"',
    ],
    [
      // pg_attrdef_adrelid_adnum_index, which nothing reads before the migrations.
      'base/5/2656',
      (path: string) => writeFile(path, Buffer.alloc(16_384, 0xaa)),
      undefined,
    ],
  ])('in %s: the message is one line', async (name, damage, reasonFor) => {
    const path = join(dataDir, 'postgres', name);
    const intact = await readFile(path);
    await damage(path);
    const outcome = await migrate(dataDir);
    await writeFile(path, intact);
    expect(outcome).toEqual(
      failsWith(
        reasonFor === undefined
          ? `The database at ${dataDir} cannot be used: invalid page in block 0 of relation "${name}" (XX001); its files are damaged, restore a backup`
          : cannotStart(dataDir, reasonFor(path), RESTORE),
      ),
    );
  });

  it('opens when it is repaired, because a start that fails changes nothing, and is closed to other users', async () => {
    const postgres = join(dataDir, 'postgres');
    await chmod(postgres, 0o755);
    expect(await migrate(dataDir)).toEqual(OPENS);
    const uid = isRoot ? NOBODY : process.geteuid!();
    expect(await stat(postgres)).toMatchObject({ uid, mode: 0o40700 });
  });
});

describe('a data folder', () => {
  let dataDir: string;
  let postgres: string;

  beforeEach(async () => {
    dataDir = await copyCluster();
    resources.defer(() => removeDataDir(dataDir));
    postgres = join(dataDir, 'postgres');
  });

  it('whose Postgres accepts no connections in time: it is ended, and the message says what to do', async () => {
    const restoreWaits = replaceWaits((milliseconds) =>
      waitForTimer(milliseconds === 10_000 ? 0 : milliseconds),
    );
    resources.defer(restoreWaits);
    // Ten seconds are the least.
    const { exitCode, stderr } = await migrate(dataDir, { DATABASE_START_TIMEOUT_MS: '9999' });
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(
      /accepts no connections after 10000 ms\. Its last message: .+\. If it recovers from a crash, set DATABASE_START_TIMEOUT_MS to a longer time\.\n$/,
    );
    restoreWaits();
    expect(await migrate(dataDir)).toEqual(OPENS);
  });

  it('has a folder of another program in the place of the database: it is not changed', async () => {
    await rm(postgres, { recursive: true });
    await mkdir(postgres);
    await chmod(postgres, 0o755);
    const { uid, mode } = await stat(postgres);
    const { exitCode, stderr } = await migrate(dataDir);
    expect(exitCode).toBe(1);
    // The words of Postgres depend on its user.
    expect(stderr).toMatch(/^The embedded Postgres cannot start in \S+\/postgres: .+\.\n$/);
    expect(await stat(postgres)).toMatchObject({ uid, mode });
  });

  it('needs programs of the system: one that is missing is named with its package, and one that fails has its message', async () => {
    const programs = join(dataDir, 'programs');
    await mkdir(programs);
    for (const folder of ['/bin', '/usr/bin']) {
      for (const program of await readdir(folder)) {
        // The two folders may be one.
        await symlink(join(folder, program), join(programs, program)).catch(() => undefined);
      }
    }
    usePath(resources, programs);
    const newDir = join(dataDir, 'new');
    for (const [program, name] of [
      ['tar', 'tar'],
      ['gzip', 'gzip'],
      ...(process.platform === 'linux' ? [['flock', 'util-linux']] : []),
      ...(isRoot ? [['setpriv', 'util-linux']] : []),
    ] as const) {
      await rename(join(programs, program), join(dataDir, 'hidden'));
      expect(await migrate(newDir)).toEqual(
        failsWith(
          `The embedded Postgres needs the program ${program} (package ${name}). Install that, or set DATABASE_URL to a Postgres server.`,
        ),
      );
      await rename(join(dataDir, 'hidden'), join(programs, program));
    }
    await rm(join(programs, 'flock'));
    const text = '#!/bin/sh\necho "flock: 9: No locks available" >&2\nexit 71\n';
    await writeFile(join(programs, 'flock'), text, { mode: 0o755 });
    expect(await migrate(dataDir)).toEqual(
      failsWith(cannotStart(dataDir, 'flock: 9: No locks available')),
    );
  });

  itAsRoot('is not taken from another user', async () => {
    await chown(postgres, 12_345, 12_345);
    expect(await migrate(dataDir)).toEqual(
      failsWith(cannotStart(dataDir, `data directory "${postgres}" has wrong ownership`, RESTORE)),
    );
  });

  itAsRoot('of a root that may not give it away is only used if that is done', async () => {
    const programs = join(dataDir, 'programs');
    await mkdir(programs);
    for (const program of ['chown', 'chmod']) {
      const text = `#!/bin/sh\nexec setpriv --bounding-set=-chown,-fowner /bin/${program} "$@"\n`;
      await writeFile(join(programs, program), text, { mode: 0o755 });
    }
    usePath(resources, `${programs}:${process.env['PATH']}`);
    const reason =
      'root may not give the folder to the user nobody here: start as an ordinary user';
    expect(await migrate(dataDir)).toEqual(failsWith(cannotStart(dataDir, reason)));
    expect(await stat(postgres)).toMatchObject({ uid: 0 });
    await run('/bin/chown', ['-R', String(NOBODY), postgres]);
    expect(await migrate(dataDir)).toEqual(OPENS);
  });

  itAsRoot(
    'has a link in the place of the database, which another user may have made: its folder is not changed',
    async () => {
      const elsewhere = join(dataDir, 'elsewhere');
      await rename(postgres, elsewhere);
      await symlink('elsewhere', postgres);
      await run('chown', ['-R', String(NOBODY), elsewhere]);
      await chmod(elsewhere, 0o750);
      expect(await migrate(dataDir)).toEqual(OPENS);
      expect(await stat(elsewhere)).toMatchObject({ uid: NOBODY, mode: 0o40750 });
    },
  );
});

((await canMountDisk()) ? it : it.skip)(
  'a disk without room for a database: the message says so, and nothing is left',
  async () => {
    const disk = (await mountSmallDisk('20m'))!;
    resources.defer(() => disk.close());
    const dataDir = join(disk.folder, 'data');
    expect(await migrate(dataDir)).toEqual(
      failsWith(
        `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.`,
      ),
    );
    expect(await readdir(dataDir)).toEqual([]);
  },
);
