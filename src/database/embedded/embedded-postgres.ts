import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { StartError } from '../../errors/start-error.js';
import { lockDataDir, prepareDataDir } from './data-dir.js';
import { isListening, makePrivateDir, openSocketDir, socketIn } from './socket-dir.js';

/** A running embedded Postgres: its address, and how to release it. */
export interface EmbeddedPostgres {
  readonly url: string;
  close(): Promise<void>;
}

/** Tells the thread of Postgres where its files and its socket are. */
export interface PostgresThreadData {
  readonly dataDir: string;
  readonly socket: string;
}

/**
 * Starts Postgres in a thread of this process, with its files below `dataDir`, and lets pg connect to it through a
 * Unix socket that only this user can use: the embedded server asks for no password.
 *
 * @param isShared whether other processes may join; a command ends too soon to serve them
 * @throws DataDirInUseError when another process has the folder open
 * @throws StartError when the folder cannot be used
 */
export async function startEmbeddedPostgres(
  dataDir: string,
  isShared: boolean,
): Promise<EmbeddedPostgres> {
  // All of this is synchronous, so that the thread runs before the caller goes on to load the service.
  prepareDataDir(dataDir);
  const resources = new AsyncDisposableStack();
  try {
    resources.use(lockDataDir(dataDir));
    const socketDir = isShared ? openSocketDir(dataDir, resources) : makePrivateDir(resources);
    const socket = socketIn(socketDir);
    // A killed process leaves its socket behind; while this process holds the lock, no other one uses that socket.
    rmSync(socket, { force: true });
    resources.defer(await startThread({ dataDir, socket }));
    return { url: urlOf(socketDir), close: () => resources.disposeAsync() };
  } catch (error) {
    await resources.disposeAsync();
    if (error instanceof StartError) throw error;
    throw new StartError(
      `The embedded Postgres cannot start in ${dataDir}: ${firstLineOf(error)}. Fix that, or set DATA_DIR to another folder.`,
      { cause: error },
    );
  }
}

/**
 * Postgres has a thread of its own: it opens while the main thread loads the service, and its work does not hold up
 * requests.
 *
 * @returns a function that closes the database and ends the thread
 */
async function startThread(data: PostgresThreadData): Promise<() => Promise<void>> {
  const thread = new Worker(new URL('./postgres-thread.js', import.meta.url), { workerData: data });
  await once(thread, 'message').catch((error: unknown) => {
    // An error loses its class on its way out of a thread.
    const isStartError = error instanceof Error && error.name === 'StartError';
    throw isStartError ? new StartError(error.message, { cause: error }) : error;
  });
  return async () => {
    thread.postMessage('stop');
    await once(thread, 'exit');
  };
}

/** Joins the embedded Postgres that another process serves on this folder, if one does. */
export async function joinEmbeddedPostgres(dataDir: string): Promise<EmbeddedPostgres | undefined> {
  const resources = new AsyncDisposableStack();
  const socketDir = openSocketDir(dataDir, resources);
  if (await isListening(socketIn(socketDir))) {
    return { url: urlOf(socketDir), close: () => resources.disposeAsync() };
  }
  await resources.disposeAsync();
  return undefined;
}

function urlOf(socketDir: string): string {
  return `postgres://postgres@/postgres?host=${encodeURIComponent(socketDir)}`;
}

/** PGlite also throws objects that are not errors and have no message. */
function firstLineOf(error: unknown): string {
  return error instanceof Error ? error.message.split('\n')[0]! : inspect(error, { compact: true });
}
