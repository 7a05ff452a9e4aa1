import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { access, constants, mkdir, mkdtemp, rename, rm, stat, symlink } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { inspect } from 'node:util';
import { PGlite } from '@electric-sql/pglite';
import { StartError } from '../../errors/start-error.js';
import { createPostgresSocketServer } from './postgres-socket-server.js';

/** A running embedded Postgres: where to reach it, and how to stop it. */
export interface EmbeddedPostgres {
  readonly url: string;
  close(): Promise<void>;
}

/** Another process has this data folder open. */
export class DataDirInUseError extends StartError {
  override readonly name = 'DataDirInUseError';
}

/** The name libpq and pg derive from port 5432. */
const SOCKET_NAME = '.s.PGSQL.5432';

/**
 * Starts Postgres inside this process, with its files below `dataDir`, and lets pg connect to it through a
 * Unix socket that only this user can use: the embedded server asks for no password.
 *
 * @param isShared whether other processes may join: a command that is soon over is no good host
 * @throws DataDirInUseError when another process has the folder open
 * @throws StartError when the folder cannot be used
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  isShared: boolean,
): Promise<EmbeddedPostgres> {
  await prepareDataDir(dataDir);
  const lock = lockDataDir(dataDir);
  try {
    const database = await openDatabase(dataDir);
    const socketDir = isShared ? await openSocketDir(dataDir) : await makePrivateDir();
    const socketPath = join(socketDir.path, SOCKET_NAME);
    // A process that was killed leaves its socket behind; nobody else can be using it under our lock.
    await rm(socketPath, { force: true });
    const server = createPostgresSocketServer(database);
    await once(server.listen(socketPath), 'listening');
    return {
      url: urlOf(socketDir.path),
      async close() {
        server.close();
        await socketDir.close();
        await database.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    if (error instanceof StartError) throw error;
    throw new StartError(
      `The embedded Postgres cannot start in ${dataDir}: ${firstLineOf(error)}. Mend that, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/** The code of an error of the system, such as ENOSPC. */
function reasonOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'unknown reason';
}

/** PGlite also throws objects that are no errors, and have no message. */
function firstLineOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0]! : inspect(error, { compact: true });
}

/** Joins the embedded Postgres that another process serves on this folder, if one does. */
export async function joinEmbeddedPostgres(dataDir: string): Promise<EmbeddedPostgres | undefined> {
  const socketDir = await openSocketDir(dataDir);
  if (await isListening(join(socketDir.path, SOCKET_NAME))) {
    return { url: urlOf(socketDir.path), close: () => socketDir.close() };
  }
  await socketDir.close();
  return undefined;
}

async function prepareDataDir(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir);
    if (!(await stat(dataDir)).isDirectory()) {
      throw new StartError(`${dataDir} is not a folder. Set DATA_DIR to a folder of your own.`);
    }
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    if (error instanceof StartError) throw error;
    throw new StartError(
      `${dataDir} cannot be written (${reasonOf(error)}). Set DATA_DIR to a folder of your own.`,
    );
  }
}

/** Not `recursive: true`, with which Node never comes back from places such as /proc. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EEXIST') return;
    if (code !== 'ENOENT' || dirname(path) === path) throw error;
    await makeFolder(dirname(path));
    await mkdir(path, { mode: 0o700 });
  }
}

/**
 * Two processes on one data folder would destroy it. Node has no file locks of its own, but SQLite takes
 * one of the operating system's: nobody can take it at the same time, and it dies with its process.
 */
function lockDataDir(dataDir: string): DatabaseSync {
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
    throw new StartError(
      `${path} cannot be used as the lock of the Plant Store (${errstr ?? reasonOf(error)}). Move it away, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/** Another process holds the lock. */
const SQLITE_BUSY = 5;

/** A new database is made beside its place and moved there when it is whole: a start may be interrupted. */
async function openDatabase(dataDir: string): Promise<PGlite> {
  const path = join(dataDir, 'postgres');
  if (!existsSync(path)) {
    const unfinished = join(dataDir, 'postgres.unfinished');
    await rm(unfinished, { recursive: true, force: true });
    const database = await PGlite.create(unfinished);
    await database.close();
    await rename(unfinished, path);
  }
  try {
    // Where this file is missing, PGlite makes a new database over the data that is there.
    await access(join(path, 'PG_VERSION'));
    return await PGlite.create(path);
  } catch (error) {
    throw new StartError(
      `${path} is damaged, or of another version of Postgres. Restore a copy of it, or move it away to start with an empty database.`,
      { cause: error },
    );
  }
}

/** The path of a socket may have 108 bytes on Linux, 104 on macOS, its end included. */
const MAX_SOCKET_PATH_BYTES = 103;

/** The data folder, under a name that is short enough for the path of a socket. */
async function openSocketDir(dataDir: string): Promise<{ path: string; close(): Promise<void> }> {
  if (Buffer.byteLength(join(dataDir, SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES) {
    return { path: dataDir, close: () => Promise.resolve() };
  }
  const dir = await makePrivateDir();
  const path = join(dir.path, 'data');
  await symlink(dataDir, path);
  return { path, close: () => dir.close() };
}

async function makePrivateDir(): Promise<{ path: string; close(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), 'plant-store-')).catch((error: unknown) => {
    throw new StartError(
      `${tmpdir()} cannot be written (${reasonOf(error)}). Set TMPDIR to a folder of your own.`,
    );
  });
  return { path, close: () => rm(path, { recursive: true }) };
}

function urlOf(socketDir: string): string {
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketDir)}`;
}

async function isListening(socketPath: string): Promise<boolean> {
  const socket = connect(socketPath);
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
