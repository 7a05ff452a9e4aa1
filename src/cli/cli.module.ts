import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AccessTokensModule } from '../auth/access-tokens.module.js';
import { AccessTokensService } from '../auth/access-tokens.service.js';
import type { DatabaseConfig } from '../config/config.js';
import { DatabaseModule } from '../database/database.module.js';

@Module({})
export class CliModule {
  /** Who only works on tokens needs the database and the tokens, and no HTTP. */
  static register(config: DatabaseConfig): DynamicModule {
    return { module: CliModule, imports: [DatabaseModule.register(config), AccessTokensModule] };
  }
}

/** Runs `action` with the service class that the guard uses, on a database whose schema is up to date. */
export async function withAccessTokens<Result>(
  config: DatabaseConfig,
  action: (tokens: AccessTokensService) => Promise<Result>,
): Promise<Result> {
  const app = await NestFactory.createApplicationContext(CliModule.register(config), {
    // Nest prints warnings on standard output, which carries results only; errors go to standard error.
    logger: ['error'],
    abortOnError: false,
  });
  try {
    return await action(app.get(AccessTokensService));
  } finally {
    await app.close();
  }
}
