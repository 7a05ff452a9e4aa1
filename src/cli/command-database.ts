import type { AccessTokensService } from '../auth/access-tokens.service.js';
import { readConfig } from '../config/config.js';
import { joinDatabase, type OpenDatabase } from '../database/open-database.js';
import { prepareDatabase } from '../database/prepare-database.js';
import { withAccessTokens } from './cli.module.js';
import type { Streams } from './streams.js';

/** Runs `action` on the database of the settings, with its schema up to date. */
export async function withDatabase(
  { stderr }: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: (database: OpenDatabase) => Promise<void>,
): Promise<void> {
  const database = await joinDatabase(readConfig(env).database);
  try {
    await prepareDatabase(database.config, (line) => stderr.write(`${line}\n`));
    await action(database);
  } finally {
    await database.close();
  }
}

/** Runs `action` with the service class that the guard uses. */
export function withTokens(
  streams: Streams,
  env: NodeJS.ProcessEnv | undefined,
  action: (tokens: AccessTokensService) => Promise<void>,
): Promise<void> {
  return withDatabase(streams, env, (database) => withAccessTokens(database.config, action));
}
