import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { StartError } from '../../errors/start-error.js';

/** Another process has this data folder open. */
export class DataDirInUseError extends StartError {
  override readonly name = 'DataDirInUseError';
}

/**
 * Makes the data folder if it does not exist.
 *
 * @throws StartError when this user cannot make it or write to it
 */
export function prepareDataDir(dataDir: string): void {
  try {
    makeFolder(dataDir);
    if (!statSync(dataDir).isDirectory()) {
      throw new StartError(`${dataDir} is not a folder. Set DATA_DIR to a folder of your own.`);
    }
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `${dataDir} cannot be written (${codeOf(error)}). Set DATA_DIR to a folder of your own.`,
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
}

/** SQLite's result codes for a database that another process has locked, and for a full disk. */
const SQLITE_BUSY = 5;
const SQLITE_FULL = 13;

/**
 * Two processes on one data folder would destroy it. Node cannot lock files, so a transaction of SQLite holds a lock of
 * the operating system, which is released when the process ends.
 *
 * @returns the lock; closing it releases the folder
 * @throws DataDirInUseError when another process holds the lock; StartError when its file cannot be used
 */
export function lockDataDir(dataDir: string): DatabaseSync {
  const path = join(dataDir, 'lock');
  let lock: DatabaseSync | undefined;
  try {
    lock = new DatabaseSync(path);
    lock.exec('BEGIN EXCLUSIVE');
    return lock;
  } catch (error) {
    lock?.close();
    const { errcode, errstr } = error as { errcode?: number; errstr?: string };
    if (errcode === SQLITE_BUSY) {
      throw new DataDirInUseError(`${dataDir} is in use by another process of the Plant Store.`);
    }
    if (errcode === SQLITE_FULL) throw noSpaceError(dataDir);
    throw new StartError(
      `${path} cannot be used as the lock of the Plant Store (${errstr ?? codeOf(error)}). Move it away, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

export function noSpaceError(dataDir: string): StartError {
  return new StartError(
    `The disk of ${dataDir} is full. Free some space, or set DATA_DIR to a folder on another disk.`,
  );
}

/** The code of an error of the system, such as ENOSPC. */
export function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}
