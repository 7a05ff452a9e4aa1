import { Module, type DynamicModule } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { requestDatabaseOptions } from './database-options.js';

@Module({})
export class DatabaseModule {
  /** Connects to a database whose schema is up to date: see `prepareDatabase`. */
  static register(config: DatabaseConfig): DynamicModule {
    return {
      module: DatabaseModule,
      imports: [
        TypeOrmModule.forRoot({
          ...requestDatabaseOptions(config),
          // Each feature brings its entities: TypeOrmModule.forFeature.
          autoLoadEntities: true,
          retryAttempts: 0,
        }),
      ],
    };
  }
}
