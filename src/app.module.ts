import { Module, type DynamicModule } from '@nestjs/common';
import { APP_FILTER, APP_GUARD } from '@nestjs/core';
import type { Logger } from 'pino';
import { AuthModule } from './auth/auth.module.js';
import { BearerGuard } from './auth/bearer.guard.js';
import type { AppConfig } from './config/config.js';
import { ConfigModule } from './config/config.module.js';
import { DatabaseModule } from './database/database.module.js';
import { PoolMetrics } from './database/pool-metrics.js';
import { ErrorFilter } from './errors/error.filter.js';
import { HealthModule } from './health/health.module.js';
import { HttpModule } from './http/http.module.js';
import { LoggingModule } from './logging/logging.module.js';
import { MetricsModule } from './metrics/metrics.module.js';
import { OperationGuard } from './openapi/operation.js';
import { PlantsModule } from './plants/plants.module.js';

@Module({})
export class AppModule {
  static register(config: AppConfig, logger: Logger): DynamicModule {
    return {
      module: AppModule,
      imports: [
        ConfigModule.register(config),
        LoggingModule.register(logger),
        MetricsModule,
        DatabaseModule.register(config.database),
        HttpModule,
        AuthModule,
        PlantsModule,
        HealthModule,
      ],
      providers: [
        // The guards run before every route of a controller, in this order. The filter turns every error that a route, a guard or a
        // middleware throws into a response.
        { provide: APP_GUARD, useClass: OperationGuard },
        { provide: APP_GUARD, useClass: BearerGuard },
        { provide: APP_FILTER, useClass: ErrorFilter },
        // Not in DatabaseModule: the commands import that module, too, and have no metrics.
        PoolMetrics,
      ],
    };
  }
}
