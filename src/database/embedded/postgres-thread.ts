import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { access, constants, readdir, rename, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { parentPort, workerData } from 'node:worker_threads';
import { PGlite } from '@electric-sql/pglite';
import { StartError } from '../../errors/start-error.js';
import { codeOf, noSpaceError } from './data-dir.js';
import type { PostgresThreadData } from './embedded-postgres.js';
import { createPostgresSocketServer } from './postgres-socket-server.js';

/** Each start fills the shared buffers with zeros; 128 MB, the default, take a seventh of a second. */
const startParams = [...PGlite.defaultStartParams, '-c', 'shared_buffers=32MB'];

/** PGlite has the error numbers of Emscripten, without their names. */
const EMSCRIPTEN_ENOSPC = 51;

const { dataDir, socket } = workerData as PostgresThreadData;
const database = await openDatabaseFiles(dataDir);
const server = createPostgresSocketServer(database);
await once(server.listen(socket), 'listening');
parentPort!.once('message', () => void stop());
parentPort!.postMessage('listening');

/** The first message of the main thread asks this thread to stop. Open connections would keep it running, so it exits. */
async function stop(): Promise<void> {
  server.close();
  await database.close();
  process.exit();
}

/**
 * Opens the database in the data folder. A start may be interrupted, so a new database is made under a
 * temporary name, and renamed when it is complete.
 *
 * @throws StartError when the disk is full, or the files are damaged or belong to another user
 */
async function openDatabaseFiles(dataDir: string): Promise<PGlite> {
  const path = join(dataDir, 'postgres');
  try {
    if (!existsSync(path)) {
      const unfinished = join(dataDir, 'postgres.unfinished');
      await rm(unfinished, { recursive: true, force: true });
      const database = await PGlite.create(unfinished);
      await database.close();
      await rename(unfinished, path);
    }
    // Without this file, PGlite would make a new database over the existing data.
    await access(join(path, 'PG_VERSION'));
    return await PGlite.create(path, { startParams });
  } catch (error) {
    if ((error as { errno?: number }).errno === EMSCRIPTEN_ENOSPC) throw noSpaceError(dataDir);
    if (!existsSync(path)) throw error;
    await checkAccess(path);
    throw new StartError(
      `${path} is damaged, or of another version of Postgres. Restore a copy of it, or move it away to start with an empty database.`,
      { cause: error },
    );
  }
}

/**
 * Finds a file that this user cannot access; PGlite reports only that it cannot start.
 *
 * @throws StartError that names the file
 */
async function checkAccess(path: string): Promise<void> {
  for (const file of [path, ...(await readdir(path, { recursive: true }).catch(() => []))]) {
    const absolute = resolve(path, file);
    await access(absolute, constants.R_OK | constants.W_OK).catch((error: unknown) => {
      throw new StartError(
        `${absolute} cannot be read and written (${codeOf(error)}). The folder and all files in it must belong to this user.`,
        { cause: error },
      );
    });
  }
}
