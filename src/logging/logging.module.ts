import { Module, type DynamicModule } from '@nestjs/common';
import type { Logger } from 'pino';

/** The injection key of the logger. */
export const PINO_LOGGER = Symbol('pino logger');

@Module({})
export class LoggingModule {
  /** Provides the logger to every module under `PINO_LOGGER`. */
  static register(logger: Logger): DynamicModule {
    return {
      module: LoggingModule,
      global: true,
      providers: [{ provide: PINO_LOGGER, useValue: logger }],
      exports: [PINO_LOGGER],
    };
  }
}
