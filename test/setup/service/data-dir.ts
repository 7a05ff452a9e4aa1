import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes an empty folder for `DATA_DIR`. */
export function makeDataDir(): Promise<string> {
  return mkdtemp(join(process.env['TEST_DATA_ROOT']!, 'plant-store-test-'));
}

/** Removes it. A Postgres whose service was killed may still be writing its last files. */
export function removeDataDir(dataDir: string): Promise<void> {
  return rm(dataDir, { recursive: true, maxRetries: 50, retryDelay: 100 });
}

/** The process of the Postgres that has this data folder open. */
export async function postgresPidIn(dataDir: string): Promise<number> {
  return Number((await readFile(join(dataDir, 'postgres/postmaster.pid'), 'utf8')).split('\n')[0]);
}
