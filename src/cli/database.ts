import { existsSync } from 'node:fs';
import { readConfig, type DatabaseConfig } from '../config/config.js';
import { clusterIn } from '../database/embedded/data-dir.js';
import { joinDatabase } from '../database/open-database.js';
import { prepareDatabase } from '../database/prepare-database.js';
import { CommandError } from './command-error.js';
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

/**
 * Like `withDatabase`, but makes no embedded database: an export of a new one would be an empty backup, without an error.
 *
 * @throws CommandError when there is no database
 */
export async function withExistingDatabase(
  streams: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: (config: DatabaseConfig) => Promise<void>,
): Promise<void> {
  const { url, dataDir } = readConfig(env).database;
  if (url === undefined && !existsSync(clusterIn(dataDir))) {
    throw new CommandError(
      `There is no database in ${dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.`,
    );
  }
  await withDatabase(streams, env, action);
}
