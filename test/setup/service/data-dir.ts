import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { archiveIn, findPostgresPackage } from '../../../src/database/embedded/postgres-package.js';

/** Makes an empty folder for `DATA_DIR`. */
export function makeDataDir(): Promise<string> {
  return mkdtemp(join(process.env['TEST_DATA_ROOT']!, 'plant-store-test-'));
}

/** Removes it. A Postgres whose service was killed may still be writing its last files. */
export function removeDataDir(dataDir: string): Promise<void> {
  return rm(dataDir, { recursive: true, maxRetries: 50, retryDelay: 100 });
}

/** Puts an embedded database into the folder, as a first start does. */
export async function makeCluster(dataDir: string): Promise<void> {
  const archive = archiveIn(findPostgresPackage());
  const path = join(dataDir, 'postgres');
  await mkdir(path, { mode: 0o700 });
  await promisify(execFile)('tar', ['-xzf', archive, '-C', path, '--no-same-owner']);
}
