import '../../node-version.js';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempDisposableSync, readFileSync, renameSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { codeOf } from './data-dir.js';
import { findNamedUser } from './ordinary-user.js';
import { findPostgresPrograms, type PostgresPrograms } from './postgres-programs.js';

/**
 * A part of the build: makes the archive of an empty database cluster that each first start unpacks. It is kept beside the
 * programs of Postgres, so it is made again when npm installs another version of them. A build on which this fails serves
 * those who have a server in DATABASE_URL.
 */
function prepare(): void {
  const programs = findPostgresPrograms();
  if (existsSync(programs.archive)) return;
  linkLibraries(programs.folder);
  makeArchive(programs);
}

/** The package leaves the symbolic links between its libraries to an install script, which `.npmrc` forbids. */
function linkLibraries(folder: string): void {
  const list = readFileSync(join(folder, 'pg-symlinks.json'), 'utf8');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    try {
      symlinkSync(basename(source), join(dirname(folder), target));
    } catch (error) {
      if (codeOf(error) !== 'EEXIST') throw error;
    }
  }
}

/**
 * The order of text must not depend on the system, whose next version may change it and so damage indexes. Segments of 1
 * MiB make a small cluster; the default is 16.
 */
const INITDB_OPTIONS = [
  '--username=postgres',
  '--auth=trust',
  '--encoding=UTF8',
  '--locale=C',
  '--locale-provider=builtin',
  '--builtin-locale=C.UTF-8',
  '--wal-segsize=1',
  '--set=timezone=UTC',
  '--set=log_timezone=UTC',
  '--no-sync',
  '--no-instructions',
];

function makeArchive({ postgres, initdb, folder, archive }: PostgresPrograms): void {
  using temporary = mkdtempDisposableSync(join(folder, 'cluster-'));
  const data = join(temporary.path, 'data');
  const unfinished = join(temporary.path, 'cluster.tgz');
  const [program, ...args] = [...findNamedUser(postgres).command, initdb];
  execFileSync(program, [...args, `--pgdata=${data}`, ...INITDB_OPTIONS], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  execFileSync('tar', ['-czf', unfinished, '-C', data, '.']);
  renameSync(unfinished, archive);
}

try {
  prepare();
} catch (error) {
  process.stderr.write(`The embedded Postgres is not prepared: ${(error as Error).message}\n`);
  process.exit(1);
}
