import { NestFactory } from '@nestjs/core';
import { AccessTokensModule } from '../auth/access-tokens.module.js';
import { AccessTokensService } from '../auth/access-tokens.service.js';
import { readConfig, type DatabaseConfig } from '../config/config.js';
import { DatabaseModule } from '../database/database.module.js';
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

/** Runs `action` with an AccessTokensService; the schema must be up to date. */
export async function withAccessTokens<Result>(
  config: DatabaseConfig,
  action: (tokens: AccessTokensService) => Promise<Result>,
): Promise<Result> {
  const app = await NestFactory.createApplicationContext(
    { module: AccessTokensModule, imports: [DatabaseModule.register(config)] },
    // Nest prints warnings on standard output, which carries results only; errors go to standard error.
    { logger: ['error'], abortOnError: false },
  );
  try {
    return await action(app.get(AccessTokensService));
  } finally {
    await app.close();
  }
}
