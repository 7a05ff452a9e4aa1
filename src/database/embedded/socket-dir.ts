import { mkdtempDisposableSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StartError } from '../../errors/start-error.js';
import { codeOf } from './data-dir.js';

/** The path of a socket may have 108 bytes on Linux and 104 on macOS, with the zero byte at its end. */
const MAX_SOCKET_PATH_BYTES = 103;

/**
 * @param cluster the folder in which Postgres has its socket
 * @param resources gets the symbolic link, if one is needed, and removes it when disposed
 * @returns the folder, under a name that is short enough for the path of a socket
 * @throws StartError when no link can be made
 */
export function openSocketDir(cluster: string, resources: AsyncDisposableStack): string {
  if (Buffer.byteLength(join(cluster, '.s.PGSQL.5432')) <= MAX_SOCKET_PATH_BYTES) return cluster;
  try {
    const folder = resources.use(mkdtempDisposableSync(join(tmpdir(), 'plant-store-')));
    const link = join(folder.path, 'postgres');
    symlinkSync(cluster, link);
    return link;
  } catch (error) {
    throw new StartError(
      `${tmpdir()} cannot be written (${codeOf(error)}). Set TMPDIR to a folder of your own.`,
    );
  }
}
