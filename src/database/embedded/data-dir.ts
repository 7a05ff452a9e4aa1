// The folder of the embedded Postgres.

import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { describeFileError } from '../../config/file-error.js';
import { StartError } from '../../errors/start-error.js';

const ROOT = 0;

const RIGHTS_OF_OTHERS = 0o077;
const OTHERS_WRITE = 0o022;

/** Where the token for development is kept, from the first start of a service on the database. */
export function developmentTokenFile(dataDir: string): string {
  return join(dataDir, 'development-token');
}

/** The folder of the database cluster. */
export function clusterIn(dataDir: string): string {
  return join(dataDir, 'postgres');
}

/**
 * Makes the data folder, if it does not exist. It must be closed to other users, or be a volume.
 *
 * @throws StartError when this user cannot make or use the data folder, or its database is missing
 */
export function makeDataDir(dataDir: string): void {
  try {
    makeFolder(dataDir);
    const { uid, mode } = statSync(dataDir);
    // A volume often belongs to root, and is open to the users of its containers: root must not lock them out.
    const isVolume = uid === ROOT && (mode & OTHERS_WRITE) !== 0;
    if (!isVolume && uid === process.geteuid!()) closeToOthers(dataDir, mode);
    else if (uid !== ROOT || !isWritable(dataDir)) throw notOwned(dataDir, uid);
    checkCluster(dataDir);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `${dataDir} cannot be used: ${describeFileError(error)}. Set DATA_DIR to a folder of your own.`,
      { cause: error },
    );
  }
}

/** @throws StartError for a database of another user, or one that was here and is missing */
function checkCluster(dataDir: string): void {
  const cluster = clusterIn(dataDir);
  const stats = statSync(cluster, { throwIfNoEntry: false });
  const user = process.geteuid!();
  // Root's Postgres works as `nobody`, and refuses the database of any other user itself.
  if (stats !== undefined && user !== ROOT && stats.uid !== user)
    throw notOwned(cluster, stats.uid);
  const token = developmentTokenFile(dataDir);
  if (stats === undefined && existsSync(token)) {
    throw new StartError(
      `${cluster} is missing, and ${token} shows that there was a database. Restore it, or remove that file to begin with an empty database.`,
    );
  }
}

/** With the folders above it. Not with `recursive`: where no folder can be made, such as in /proc, that tries without an end. */
function makeFolder(path: string, isAboveMade = false): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') {
      if (statSync(path).isDirectory()) return;
      throw new StartError(
        `${path} cannot be used: it is not a folder. Set DATA_DIR to a folder of your own.`,
      );
    }
    if (code !== 'ENOENT' || isAboveMade) throw error;
    makeFolder(dirname(path));
    makeFolder(path, true);
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK);
    return true;
  } catch (error) {
    // On a file system that is read-only, another owner would not help.
    if ((error as NodeJS.ErrnoException).code === 'EACCES') return false;
    throw error;
  }
}

/** Closes the folder to other users, but not one such as /usr, which DATA_DIR may name by mistake: they need its files. */
function closeToOthers(dataDir: string, mode: number): void {
  if ((mode & RIGHTS_OF_OTHERS) === 0) return;
  const isDataDir = existsSync(join(clusterIn(dataDir), 'PG_VERSION'));
  // A new disk has a folder of its own.
  const others = readdirSync(dataDir).filter((name) => name !== 'lost+found');
  if (!isDataDir && others.length > 0) {
    throw new StartError(
      `${dataDir} is open to other users, and has other files than a database. Set DATA_DIR to a folder of your own; if it is one, close it: chmod 700 ${dataDir}`,
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
