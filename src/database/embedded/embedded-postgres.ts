import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { inspect } from 'node:util';
import { StartError } from '../../errors/start-error.js';
import { lockDataDir, openDatabaseFiles, prepareDataDir } from './data-dir.js';
import { createPostgresSocketServer } from './postgres-socket-server.js';
import { isListening, makePrivateDir, openSocketDir, socketIn } from './socket-dir.js';

/** A running embedded Postgres: its address, and how to release it. */
export interface EmbeddedPostgres {
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Starts Postgres inside this process, with its files below `dataDir`, and lets pg connect to it through a
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
  await prepareDataDir(dataDir);
  const resources = new AsyncDisposableStack();
  try {
    resources.use(lockDataDir(dataDir));
    const database = await openDatabaseFiles(dataDir);
    resources.defer(() => database.close());
    const socketDir = await (isShared
      ? openSocketDir(dataDir, resources)
      : makePrivateDir(resources));
    const socket = socketIn(socketDir);
    // A killed process leaves its socket behind; while this process holds the lock, no other one uses that socket.
    await rm(socket, { force: true });
    const server = createPostgresSocketServer(database);
    await once(server.listen(socket), 'listening');
    resources.defer(() => void server.close());
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

/** Joins the embedded Postgres that another process serves on this folder, if one does. */
export async function joinEmbeddedPostgres(dataDir: string): Promise<EmbeddedPostgres | undefined> {
  const resources = new AsyncDisposableStack();
  const socketDir = await openSocketDir(dataDir, resources);
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
