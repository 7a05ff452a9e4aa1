import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { databaseOptions } from './database-options.js';

@Module({})
export class DatabaseModule {
  /** The connections of the service. The schema must be up to date. */
  static register(config: DatabaseConfig): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...databaseOptions(config),
          // Each feature registers its own entities: TypeOrmModule.forFeature.
          autoLoadEntities: true,
          // Not `retryAttempts: 0`, which still logs a stack trace beside the message for the operator.
          toRetry: () => false,
        }),
      ],
    };
  }
}
