import { once } from 'node:events';
import { mkdtempDisposableSync, symlinkSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

/** The path of the socket in a folder: libpq and pg derive its name from port 5432. */
export function socketIn(dir: string): string {
  return join(dir, '.s.PGSQL.5432');
}

/** The path of a socket may have 108 bytes on Linux and 104 on macOS, with the zero byte at its end. */
const MAX_SOCKET_PATH_BYTES = 103;

/**
 * @param resources gets the symbolic link, if one is needed, and removes it when disposed
 * @returns the data folder, under a name that is short enough for the path of a socket
 */
export function openSocketDir(dataDir: string, resources: AsyncDisposableStack): string {
  if (Buffer.byteLength(socketIn(dataDir)) <= MAX_SOCKET_PATH_BYTES) return dataDir;
  const path = join(makePrivateDir(resources), 'data');
  symlinkSync(dataDir, path);
  return path;
}

/**
 * @param resources gets the folder, and removes it when disposed
 * @returns a new folder that only this user can use
 */
export function makePrivateDir(resources: AsyncDisposableStack): string {
  try {
    return resources.use(mkdtempDisposableSync(join(tmpdir(), 'plant-store-'))).path;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new StartError(
      `${tmpdir()} cannot be written (${code}). Set TMPDIR to a folder of your own.`,
    );
  }
}

export async function isListening(socketPath: string): Promise<boolean> {
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
