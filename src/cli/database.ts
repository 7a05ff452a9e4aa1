// Opens the database of a command.

import { statSync } from 'node:fs';
import { readConfig, settingWarnings, type Config, type DatabaseConfig } from '../config/config.js';
import { clusterIn } from '../database/embedded/data-dir.js';
import { joinDatabase } from '../database/open-database.js';
import { addressOf, inspectDatabase, prepareDatabase } from '../database/prepare-database.js';
import type { NeededPrivilege } from '../database/schema-problem.js';
import { CommandError } from './command-error.js';
import type { Streams } from './output.js';

type Action = (config: DatabaseConfig) => Promise<void>;

/** Runs `action` on the database that the settings name, with its schema up to date. */
export function withDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: Action,
): Promise<void> {
  return openAndRun(stderr, readSettings(stderr, env), action);
}

/**
 * Like `withDatabase`, but makes no embedded database: an export of a new one would be an empty backup, without an error.
 *
 * @throws CommandError when there is no database
 */
export async function withExistingDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: Action,
): Promise<void> {
  const config = readSettings(stderr, env);
  if (!exists(config)) {
    throw new CommandError(
      `There is no database in ${config.dataDir}. Set DATA_DIR or DATABASE_URL to that of the service.`,
    );
  }
  await openAndRun(stderr, config, action);
}

/** Says what would else be found out too late: a mistyped name of a setting. */
function readSettings(stderr: Streams['stderr'], env: NodeJS.ProcessEnv | undefined) {
  const { database } = readConfig(env);
  for (const problem of settingWarnings(env)) stderr.write(`${problem}\n`);
  return database;
}

async function openAndRun(
  stderr: Streams['stderr'],
  config: Config['database'],
  action: Action,
): Promise<void> {
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
 * Looks at the settings and at the database that they name, and changes nothing.
 *
 * @param needed all privileges that requests need
 * @returns what a start would find
 * @throws StartError or ConfigError when a start would fail
 */
export async function checkDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  needed: readonly NeededPrivilege[],
): Promise<string> {
  const config = readSettings(stderr, env);
  if (!exists(config)) {
    return `The settings are valid. There is no database in ${config.dataDir} yet: a start will create it.`;
  }
  const database = await joinDatabase(config);
  try {
    const isCurrent = await inspectDatabase(database.config, needed);
    const schema = `the schema of the database at ${addressOf(database.config)}`;
    return isCurrent
      ? `All is well: the settings are valid, and ${schema} is up to date.`
      : `The settings are valid. A start, or ./plant-store migrate, brings ${schema} up to date, for which its role must own the tables.`;
  } finally {
    await database.close();
  }
}

/** A server is expected to have one. */
function exists({ url, dataDir }: Config['database']): boolean {
  if (url !== undefined) return true;
  try {
    statSync(clusterIn(dataDir));
    return true;
  } catch (error) {
    // A folder that is closed to this user may contain one, and one below a file never will: to open it gives the reason.
    return (error as NodeJS.ErrnoException).code !== 'ENOENT';
  }
}
