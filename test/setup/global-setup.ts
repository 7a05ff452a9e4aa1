import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readFile, rename, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@jest/types';
import type * as Embedded from '../../src/database/embedded/embedded-postgres.js';

declare global {
  /** The servers that global setup started, for global teardown. */
  var embeddedServers: { close(): Promise<void> }[] | undefined;
}

/**
 * Prepares what the test files share: an empty embedded database to copy, and a running server for each worker of Jest.
 */
export default async function globalSetup(
  { maxWorkers }: Config.GlobalConfig,
  { rootDir, testRegex }: Config.ProjectConfig,
): Promise<void> {
  process.env['TEST_TEMPLATE_DIR'] = await openTemplate(rootDir);
  process.env['TEST_DATA_ROOT'] = (await hasRoom(MEMORY)) ? MEMORY : tmpdir();
  const needsServers = testRegex.some((regex) => /spec|e2e|browser|examples/.test(String(regex)));
  if (needsServers && process.env['TEST_DATABASE_URL'] === undefined) {
    await startServers(rootDir, maxWorkers);
  }
}

/** An empty embedded database takes seconds to make, so it is kept between runs, one for each version of PGlite. */
async function openTemplate(rootDir: string): Promise<string> {
  const modules = join(rootDir, 'node_modules');
  const manifest = await readFile(join(modules, '@electric-sql/pglite/package.json'), 'utf8');
  const { version } = JSON.parse(manifest) as { version: string };
  const cache = join(modules, '.cache/plant-store');
  const template = join(cache, `pglite-${version}`);
  if (!existsSync(template)) await makeTemplate(cache, template);
  return template;
}

async function startServers(rootDir: string, count: number): Promise<void> {
  // The built file: in global setup, Jest does not map the name of a .js file to its .ts source.
  const built = join(rootDir, 'dist/database/embedded/embedded-postgres.js');
  const { startEmbeddedPostgres } = (await import(built)) as typeof Embedded;
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const dataDir = await mkdtemp(join(process.env['TEST_DATA_ROOT']!, 'plant-store-test-'));
      await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
      const server = await startEmbeddedPostgres(dataDir, true);
      return {
        url: server.url,
        close: () => server.close().then(() => rm(dataDir, { recursive: true })),
      };
    }),
  );
  process.env['TEST_EMBEDDED_URLS'] = JSON.stringify(servers.map(({ url }) => url));
  globalThis.embeddedServers = servers;
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
