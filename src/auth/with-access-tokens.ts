import { NestFactory } from '@nestjs/core';
import type { DatabaseConfig } from '../config/config.js';
import { DatabaseModule } from '../database/database.module.js';
import { AccessTokensModule } from './access-tokens.module.js';
import { AccessTokensService } from './access-tokens.service.js';

/** Runs `action` with an AccessTokensService; the schema must be up to date. */
export async function withAccessTokens<Result>(
  config: DatabaseConfig,
  action: (tokens: AccessTokensService) => Promise<Result>,
): Promise<Result> {
  const app = await NestFactory.createApplicationContext(
    { module: AccessTokensModule, imports: [DatabaseModule.register(config)] },
    // Standard output carries results only, and the command itself explains its error, without a stack trace.
    { logger: false, abortOnError: false },
  );
  try {
    return await action(app.get(AccessTokensService));
  } finally {
    await app.close();
  }
}
