import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { databaseOptions, SERVER_PART } from './database-options.js';

@Module({})
export class DatabaseModule {
  /** The connections of the service and the commands: every wait has a limit. The schema must be up to date. */
  static register(config: DatabaseConfig): DynamicModule {
    const options = databaseOptions(config, {
      statement: Math.ceil(config.timeout * SERVER_PART),
      lock: 0,
    });
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...options,
          poolSize: config.poolSize,
          // Timed here, too: a frozen server would never report its own timeout.
          extra: { ...options.extra, query_timeout: config.timeout, keepAlive: true },
          // Each feature registers its own entities: TypeOrmModule.forFeature.
          autoLoadEntities: true,
          // Not `retryAttempts: 0`, which still logs a stack trace beside the message for the operator.
          toRetry: () => false,
        }),
      ],
    };
  }
}
