import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rename, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from 'jest';

/**
 * Makes an empty embedded database for all tests to copy. That takes seconds, so the database is kept between runs,
 * one for each version of PGlite.
 */
export default async function globalSetup({ rootDir }: Config): Promise<void> {
  const modules = join(rootDir!, 'node_modules');
  const manifest = await readFile(join(modules, '@electric-sql/pglite/package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  const cache = join(modules, '.cache/plant-store');
  const template = join(cache, `pglite-${version}`);
  if (!existsSync(template)) await makeTemplate(cache, template);
  process.env['TEST_TEMPLATE_DIR'] = template;
  process.env['TEST_DATA_ROOT'] = (await hasRoom(MEMORY)) ? MEMORY : tmpdir();
}

/** A file system in memory, where Linux has one: a database is copied there ten times faster than to a disk. */
const MEMORY = '/dev/shm';

/** More than all databases of one run need; containers often have less. */
const ROOM_BYTES = 2 ** 30;

async function hasRoom(path: string): Promise<boolean> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize >= ROOM_BYTES;
  } catch {
    return false;
  }
}

async function makeTemplate(cache: string, template: string): Promise<void> {
  await mkdir(cache, { recursive: true });
  const unfinished = await mkdtemp(join(cache, 'unfinished-'));
  const { PGlite } = await import('@electric-sql/pglite');
  const database = await PGlite.create(unfinished);
  await database.close();
  await rename(unfinished, template).catch(async (error: NodeJS.ErrnoException) => {
    await rm(unfinished, { recursive: true });
    // Another run of the tests made it at the same time.
    if (error.code !== 'ENOTEMPTY') throw error;
  });
}
