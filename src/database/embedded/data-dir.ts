import { execFileSync } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

const ROOT = 0;

/** The user who runs Postgres for root. */
const NOBODY = 65_534;

/** Without the sticky bit, everybody who writes to a folder may rename what is in it. */
const EVERYBODY_WRITES = constants.S_IWOTH | 0o1000;

/** Any right of other users. */
const OPEN = 0o077;

/** The right of other users to make files. */
const WRITABLE = 0o022;

/** Names in the data folder that this and earlier versions of the service make, and the system on a new disk. */
const EXPECTED = ['postgres', 'postgres.unfinished', 'development-token', 'lock', 'lost+found'];

/** The folder of the database cluster. */
export function clusterIn(dataDir: string): string {
  return join(dataDir, 'postgres');
}

/**
 * Makes the data folder, if it does not exist, and closes it to other users: a user who may write to it could put another
 * database in place of this one. A volume often belongs to root and is open to the group of its users, or to all with the
 * sticky bit, as /tmp is. There, only the cluster in it is closed.
 *
 * @throws StartError when this user cannot make or use the data folder
 */
export function openDataDir(dataDir: string): void {
  try {
    // Not mkdirSync: in places such as /proc, it would try again forever. Others must not write the folders above, either.
    if (!existsSync(dataDir)) {
      execFileSync('sh', ['-c', 'umask go-w && mkdir -p "$0"', dataDir], { stdio: 'pipe' });
    }
    const stats = statSync(dataDir);
    if (!stats.isDirectory()) throw new Error('it is not a folder');
    const { uid, mode } = stats;
    refuseOtherFolder(clusterIn(dataDir));
    const isOwn = uid === process.geteuid!();
    if (isOwn) close(dataDir, mode);
    else if (uid !== ROOT || (mode & EVERYBODY_WRITES) === constants.S_IWOTH)
      throw notOwned(dataDir, uid);
    try {
      accessSync(dataDir, constants.W_OK);
    } catch (error) {
      // On a file system that is read-only, another owner would not help.
      throw !isOwn && (error as NodeJS.ErrnoException).code === 'EACCES'
        ? notOwned(dataDir, uid)
        : error;
    }
  } catch (error) {
    if (error instanceof StartError) throw error;
    // The last line of the output of a program, or the only one of a message.
    const reason = (error as Error).message.trimEnd().split('\n').at(-1);
    throw new StartError(
      `${dataDir} cannot be used: ${reason}. Set DATA_DIR to a folder of your own.`,
      { cause: error },
    );
  }
}

/** Before anything is changed: DATA_DIR may name a folder of other programs by mistake, or several users may have been here. */
function refuseOtherFolder(cluster: string): void {
  if (!existsSync(cluster)) return;
  const { uid } = statSync(cluster);
  const user = process.geteuid!();
  if (uid !== user && (user !== ROOT || uid !== NOBODY)) throw notOwned(cluster, uid);
  try {
    statSync(join(cluster, 'PG_VERSION'));
  } catch (error) {
    // Root may lack the right to enter folders of others, which the start of Postgres reports.
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return;
    throw new StartError(
      `${cluster} is not a database, because it contains no file PG_VERSION. Restore a copy of it, move it away, or set DATA_DIR to a folder of your own.`,
      { cause: error },
    );
  }
}

/** Closes the data folder to other users, but not a folder such as /usr, which DATA_DIR may name by mistake: they need its files. */
function close(dataDir: string, mode: number): void {
  if ((mode & OPEN) === 0) return;
  // There, a process of `nobody` may have made a cluster whose settings are programs that Postgres runs with root's right.
  const mayBePlanted = process.geteuid!() === ROOT && (mode & WRITABLE) !== 0;
  const other = readdirSync(dataDir).find(
    (name) => !EXPECTED.includes(name) || (mayBePlanted && name === 'postgres'),
  );
  if (other !== undefined) {
    throw new StartError(
      `${dataDir} is open to other users, and contains other files (${other}). Set DATA_DIR to a folder of your own; if it is one, close it (chmod 700).`,
    );
  }
  chmodSync(dataDir, 0o700);
}

/** The error for a folder that belongs to the user of this number, not to the one who started the service. */
function notOwned(path: string, uid: number): StartError {
  return new StartError(
    `${path} belongs to another user (uid ${uid}). Start as that user, or stop its service and give it to yours (chown -R ${process.geteuid!()} ${path}), or set DATA_DIR to a folder of your own.`,
  );
}

/** The path of a socket has at most 107 bytes on Linux and 103 on macOS. This is the longest path of its folder. */
const MAX_SOCKET_DIR_BYTES = 103 - '/.s.PGSQL.5432'.length;

/**
 * @param dataDir a folder that exists
 * @param resources gets the open folder, if its name is too long
 * @returns the folder of the cluster, under a name that is short enough for the path of a socket. A short name ends with this process
 * @throws StartError when this system knows no shorter name
 */
export function openSocketDir(dataDir: string, resources: AsyncDisposableStack): string {
  const cluster = clusterIn(dataDir);
  if (Buffer.byteLength(cluster) <= MAX_SOCKET_DIR_BYTES) return cluster;
  if (process.platform !== 'linux') {
    throw new StartError(
      `${dataDir} is too long for the path of a socket. Set DATA_DIR to a shorter path.`,
    );
  }
  const descriptor = openSync(dataDir, 'r');
  resources.defer(() => closeSync(descriptor));
  return clusterIn(`/proc/${process.pid}/fd/${descriptor}`);
}
