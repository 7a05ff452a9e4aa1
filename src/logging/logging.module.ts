import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';

/** The injection key of the logger for requests; other injected code uses Nest's `Logger`. */
export const REQUEST_LOGGER = Symbol('request logger');

@Module({})
export class LoggingModule {
  static register(logger: Logger): DynamicModule {
    return {
      module: LoggingModule,
      global: true,
      // RequestObserver logs requests: pino-http would create a logger for each of them.
      imports: [LoggerModule.forRoot({ pinoHttp: { logger }, forRoutes: [] })],
      providers: [{ provide: REQUEST_LOGGER, useValue: logger }],
      exports: [REQUEST_LOGGER],
    };
  }
}
