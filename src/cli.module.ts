import { Module, type DynamicModule } from '@nestjs/common';
import { AccessTokensModule } from './auth/access-tokens.module.js';
import type { DatabaseConfig } from './database/database-options.js';
import { DatabaseModule } from './database/database.module.js';

@Module({})
export class CliModule {
  /** The command line needs the database and the tokens, and no HTTP. */
  static register(config: DatabaseConfig): DynamicModule {
    return { module: CliModule, imports: [DatabaseModule.register(config), AccessTokensModule] };
  }
}
