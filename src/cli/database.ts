// Opens the database of a command.

import { statSync } from 'node:fs';
import { readConfig, settingWarnings, type Config, type DatabaseConfig } from '../config/config.js';
import { clusterIn } from '../database/embedded/data-dir.js';
import { joinDatabase } from '../database/open-database.js';
import { prepareDatabase } from '../database/prepare-database.js';
import { CommandError } from './command-error.js';
import type { Streams } from './output.js';

/**
 * Runs `action` on the database that the settings name, with its schema up to date. Says what would else be found out too late:
 * a mistyped name of a setting, and that there was no embedded database yet.
 */
export async function withDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: (config: DatabaseConfig) => Promise<void>,
): Promise<void> {
  const { database: config } = readConfig(env);
  for (const problem of settingWarnings(env)) stderr.write(`${problem}\n`);
  const isNew = !exists(config);
  const database = await joinDatabase(config);
  if (isNew) stderr.write(`Made an embedded database in ${config.dataDir}.\n`);
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
  const { database: config } = readConfig(env);
  if (!exists(config)) {
    for (const problem of settingWarnings(env)) streams.stderr.write(`${problem}\n`);
    throw new CommandError(
      `There is no database in ${config.dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.`,
    );
  }
  await withDatabase(streams, env, action);
}

/** A server is expected to have one. */
function exists({ url, dataDir }: Config['database']): boolean {
  if (url !== undefined) return true;
  try {
    statSync(clusterIn(dataDir));
    return true;
  } catch (error) {
    // A folder that is closed to this user may contain one, and to open it gives the reason.
    return (error as NodeJS.ErrnoException).code === 'EACCES';
  }
}
