import { Global, Module } from '@nestjs/common';
import { Registry } from 'prom-client';
import { MetricsController } from './metrics.controller.js';
import { createRegistry } from './registry.js';

/** Provides the registry, in which each feature declares its own metrics. */
@Global()
@Module({
  controllers: [MetricsController],
  providers: [{ provide: Registry, useFactory: createRegistry }],
  exports: [Registry],
})
export class MetricsModule {}
