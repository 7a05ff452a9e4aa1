import { existsSync } from 'node:fs';
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Config } from '@jest/types';
import type * as OpenDatabase from '../../../src/database/open-database.js';

declare global {
  /** Stops the server that global setup started. */
  var stopTestServer: (() => Promise<void>) | undefined;
}

/** Starts the embedded Postgres, on which every test has databases of its own, unless `TEST_DATABASE_URL` names another server. */
export default async function globalSetup(
  _global: Config.GlobalConfig,
  { rootDir }: Config.ProjectConfig,
): Promise<void> {
  const root = (process.env['TEST_DATA_ROOT'] ??= (await hasRoom(MEMORY)) ? MEMORY : tmpdir());
  if (process.env['TEST_DATABASE_URL'] !== undefined) return;
  // The built file: in global setup, Jest does not map the name of a .js file to its .ts source.
  const built = join(rootDir, 'dist/database/open-database.js');
  if (!existsSync(built)) {
    throw new Error(
      'The build is missing. Run: npm run build (npm test and test/run build by themselves).',
    );
  }
  const { openDatabase } = (await import(built)) as typeof OpenDatabase;
  const dataDir = await mkdtemp(join(root, 'plant-store-test-'));
  const options = { dataDir, poolSize: MAX_CONNECTIONS, timeout: 0, startTimeout: 60_000 };
  const database = await openDatabase(
    { ...options, url: undefined, batchSize: undefined, batchesInFlight: undefined },
    (text) => process.stderr.write(`${text}\n`),
  );
  process.env['TEST_DATABASE_URL'] = database.config.url;
  globalThis.stopTestServer = async () => {
    await database.close();
    await rm(dataDir, { recursive: true });
  };
}

/** Enough for all workers of Jest. */
const MAX_CONNECTIONS = 500;

/** A file system in memory, where Linux has one: databases are made there in half the time. */
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
