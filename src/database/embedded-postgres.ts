import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, chmod, constants, mkdir, realpath, rm } from 'node:fs/promises';
import { connect, createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';
import { PGLiteSocketServer } from '@electric-sql/pglite-socket';

/** A running embedded Postgres: where to reach it, and how to stop it. */
export interface EmbeddedPostgres {
  readonly url: string;
  close(): Promise<void>;
}

/** Another process has this data folder open. */
export class DataDirInUseError extends Error {
  override readonly name = 'DataDirInUseError';
}

/** The data folder cannot be created or written. */
export class DataDirNotWritableError extends Error {
  override readonly name = 'DataDirNotWritableError';
}

/** Far more than the pool of one service and a command beside it; connections are cheap here. */
const MAX_CONNECTIONS = 1100;

/**
 * Starts Postgres inside this process, with its files in `dataDir`, and lets pg connect to it through a
 * Unix socket that only this user can reach: the embedded server asks for no password.
 *
 * @throws DataDirInUseError when another process serves this folder
 * @throws DataDirNotWritableError when the folder cannot be used
 */
export async function startEmbeddedPostgres(dataDir: string): Promise<EmbeddedPostgres> {
  await prepareDataDir(dataDir);
  const socketDir = await socketDirOf(dataDir);
  const lock = await lockDataDir(dataDir, socketDir);
  try {
    const socketPath = join(socketDir, SOCKET_NAME);
    // A process that was killed leaves its socket behind.
    await rm(socketPath, { force: true });
    const database = await PGlite.create(dataDir);
    const server = new PGLiteSocketServer({
      db: database,
      path: socketPath,
      maxConnections: MAX_CONNECTIONS,
    });
    await server.start();
    return {
      url: urlOf(socketDir),
      async close() {
        await server.stop();
        await database.close();
        lock.close();
      },
    };
  } catch (error) {
    lock.close();
    throw error;
  }
}

/** The address of the embedded Postgres that another process runs on this folder, if one does. */
export async function findEmbeddedPostgres(dataDir: string): Promise<string | undefined> {
  try {
    const socketDir = await socketDirOf(dataDir);
    return (await isListening(join(socketDir, LOCK_NAME))) ? urlOf(socketDir) : undefined;
  } catch {
    return undefined;
  }
}

/** The name libpq and pg derive from port 5432. */
const SOCKET_NAME = '.s.PGSQL.5432';

/** Two processes on one data folder destroy it. A listening socket is a lock that dies with its process. */
const LOCK_NAME = 'lock';

async function lockDataDir(dataDir: string, socketDir: string): Promise<Server> {
  const path = join(socketDir, LOCK_NAME);
  if (await isListening(path)) {
    throw new DataDirInUseError(`${dataDir} is in use by another process of the Plant Store.`);
  }
  await rm(path, { force: true });
  const lock = createServer((socket) => socket.destroy());
  await once(lock.listen(path), 'listening');
  return lock.unref();
}

async function prepareDataDir(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 });
    await access(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
    throw new DataDirNotWritableError(
      `${dataDir} cannot be written (${reason}). Set DATA_DIR to a folder of your own.`,
    );
  }
}

/**
 * The folder of the socket: derived from the data folder, so that other processes find it, but outside
 * of it, because a socket's path is limited to about 100 bytes and the data folder's is not.
 */
async function socketDirOf(dataDir: string): Promise<string> {
  const id = createHash('sha256')
    .update(await realpath(dataDir))
    .digest('hex')
    .slice(0, 16);
  const socketDir = join(tmpdir(), `plant-store-${process.getuid?.() ?? 'user'}-${id}`);
  await mkdir(socketDir, { recursive: true, mode: 0o700 });
  // Fails if another user made the folder first, hoping to be talked to.
  await chmod(socketDir, 0o700);
  return socketDir;
}

function urlOf(socketDir: string): string {
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketDir)}`;
}

function isListening(socketPath: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
