import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  statSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

/** The folder of the database cluster. */
export function clusterIn(dataDir: string): string {
  return join(dataDir, 'postgres');
}

/**
 * Makes the data folder, if it does not exist, and closes it and the database cluster to other users.
 *
 * @param uid the user as whom Postgres runs
 * @throws StartError when this user cannot make or use the data folder
 */
export function openDataDir(dataDir: string, uid: number): void {
  const cluster = clusterIn(dataDir);
  try {
    makeFolder(dataDir);
    closeToOthers(dataDir);
    if (existsSync(cluster)) closeCluster(cluster, uid);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `${dataDir} cannot be written (${codeOf(error)}). Set DATA_DIR to a folder of your own.`,
      { cause: error },
    );
  }
}

/** Not `recursive: true`: in places such as /proc, Node would try again forever. */
function makeFolder(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    const code = codeOf(error);
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    makeFolder(dirname(path));
    mkdirSync(path, { mode: 0o700 });
  }
  sync(dirname(path));
}

/**
 * Another user who may change the data folder could put another database in place of this one. A volume often belongs to root
 * and is open to the group of its users, or to all with the sticky bit: there, only the folder of the cluster is closed.
 */
function closeToOthers(dataDir: string): void {
  const stats = statSync(dataDir);
  const { mode, uid } = stats;
  if (!stats.isDirectory()) {
    throw new StartError(`${dataDir} is not a folder. Set DATA_DIR to a folder of your own.`);
  }
  const isOpenToAll = (mode & constants.S_IWOTH) !== 0 && (mode & STICKY) === 0;
  if (uid === process.geteuid!()) {
    if ((mode & OTHERS) !== 0) chmodSync(dataDir, 0o700);
  } else if (uid !== 0 || isOpenToAll) {
    throw notOwned(dataDir, uid);
  }
  try {
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    // On a file system that is read-only, another owner would not help.
    const isAnothers = codeOf(error) === 'EACCES' && uid !== process.geteuid!();
    throw isAnothers ? notOwned(dataDir, uid) : error;
  }
}

const STICKY = 0o1000;
const OTHERS = 0o077;

function closeCluster(cluster: string, user: number): void {
  const stats = lstatSync(cluster);
  if (!stats.isDirectory()) {
    throw new StartError(
      `${cluster} is not a folder. Move it away, or set DATA_DIR to another folder.`,
    );
  }
  const { mode, uid } = stats;
  if (uid !== user && uid !== process.geteuid!()) throw notOwned(cluster, uid);
  if ((mode & OTHERS) !== 0) chmodSync(cluster, 0o700);
}

function notOwned(path: string, uid: number): StartError {
  return new StartError(
    `${path} belongs to another user (uid ${uid}). Start as that user, give it to yours (chown -R ${process.geteuid!()}), or set DATA_DIR to a folder of your own.`,
  );
}

/** Entries of a folder survive a power failure only when the folder itself is on the disk. */
export function sync(folder: string): void {
  const descriptor = openSync(folder, constants.O_RDONLY);
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** The text of ENOSPC, in the messages of tar and Postgres. */
export const NO_SPACE = 'No space left on device';

export function noSpaceError(dataDir: string): StartError {
  return new StartError(
    `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.`,
  );
}

/** The code of an error of the system, such as ENOSPC. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code;
}
