import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PGlite } from '@electric-sql/pglite';

/**
 * Prepares one empty embedded database that every test file copies: making one takes seconds, copying it
 * does not. Returns the teardown.
 */
export default async function globalSetup(): Promise<() => Promise<void>> {
  const dir = await mkdtemp(join(tmpdir(), 'plant-store-template-'));
  process.env['TEST_TEMPLATE_DIR'] = dir;
  const database = await PGlite.create(dir);
  await database.close();
  return () => rm(dir, { recursive: true });
}
