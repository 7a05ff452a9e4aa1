import { execFile } from 'node:child_process';
import { mkdtemp, open, rm, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const exec = promisify(execFile);

const CHUNK = Buffer.alloc(1024 * 1024);

/** A file system of its own, in memory. */
export interface SmallDisk {
  readonly folder: string;
  /** Leaves no byte free. */
  fill(): Promise<void>;
  /** Removes what `fill` wrote. */
  free(): Promise<void>;
  close(): Promise<void>;
}

/** @returns whether this user may mount a file system */
export async function canMountDisk(): Promise<boolean> {
  const disk = await mountSmallDisk('1m');
  await disk?.close();
  return disk !== undefined;
}

/**
 * @param size as `mount` takes it; the default has room for the rows of a long run, and little enough to be filled in a
 *   moment
 * @returns undefined when this user may not mount a file system
 */
export async function mountSmallDisk(size = '1g'): Promise<SmallDisk | undefined> {
  const folder = await mkdtemp(join(tmpdir(), 'plant-store-disk-'));
  try {
    await exec('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]);
  } catch {
    await rmdir(folder);
    return undefined;
  }
  const ballast = join(folder, 'ballast');
  return {
    folder,
    async fill() {
      const file = await open(ballast, 'w');
      try {
        for (;;) await file.write(CHUNK);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      } finally {
        await file.close();
      }
    },
    free: () => rm(ballast),
    async close() {
      await exec('umount', [folder]);
      await rmdir(folder);
    },
  };
}
