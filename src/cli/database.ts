import { readConfig, type DatabaseConfig } from '../config/config.js';
import { joinDatabase } from '../database/open-database.js';
import { prepareDatabase } from '../database/prepare-database.js';
import type { Streams } from './streams.js';

/** Runs `action` on the database that the settings name, with its schema up to date. */
export async function withDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: (config: DatabaseConfig) => Promise<void>,
): Promise<void> {
  const database = await joinDatabase(readConfig(env).database);
  try {
    await prepareDatabase(database.config, (message) => stderr.write(`${message}\n`));
    await action(database.config);
  } finally {
    await database.close();
  }
}
