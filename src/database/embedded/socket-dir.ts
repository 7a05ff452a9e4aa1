import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { StartError } from '../../errors/start-error.js';

/** The path of a socket may have 108 bytes on Linux and 104 on macOS, with the zero byte at its end. */
const MAX_SOCKET_PATH_BYTES = 103;

/**
 * @param dataDir a folder that exists
 * @param resources gets the open folder, if its name is too long
 * @returns the folder of the cluster, under a name that is short enough for the path of a socket. A short name ends with this process
 * @throws StartError when this system knows no shorter name
 */
export function openSocketDir(dataDir: string, resources: AsyncDisposableStack): string {
  const socketDir = join(dataDir, 'postgres');
  if (Buffer.byteLength(join(socketDir, '.s.PGSQL.5432')) <= MAX_SOCKET_PATH_BYTES) {
    return socketDir;
  }
  if (process.platform !== 'linux') {
    throw new StartError(
      `${dataDir} is too long for the path of a socket. Set DATA_DIR to a shorter path.`,
    );
  }
  const descriptor = openSync(dataDir, 'r');
  resources.defer(() => closeSync(descriptor));
  return `/proc/${process.pid}/fd/${descriptor}/postgres`;
}
