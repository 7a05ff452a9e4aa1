import { Module, type DynamicModule } from '@nestjs/common';
import { LoggerModule } from 'nestjs-pino';
import type { Logger } from 'pino';

/** The injection key of pino's logger, for entries with fields or an error; Nest's `Logger` is enough for a text. */
export const PINO_LOGGER = Symbol('pino logger');

@Module({})
export class LoggingModule {
  static register(logger: Logger): DynamicModule {
    return {
      module: LoggingModule,
      global: true,
      // RequestObserver logs requests: pino-http would create a logger for each of them.
      imports: [LoggerModule.forRoot({ pinoHttp: { logger }, forRoutes: [] })],
      providers: [{ provide: PINO_LOGGER, useValue: logger }],
      exports: [PINO_LOGGER],
    };
  }
}
