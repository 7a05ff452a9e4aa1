import { cp, mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';

/** Makes a folder for `DATA_DIR`, with an empty embedded database. */
export async function makeDataDir(): Promise<string> {
  const dataDir = await mkdtemp(join(process.env['TEST_DATA_ROOT']!, 'plant-store-test-'));
  await cp(process.env['TEST_TEMPLATE_DIR']!, join(dataDir, 'postgres'), { recursive: true });
  return dataDir;
}
