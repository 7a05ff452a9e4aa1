import { Global, Module } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { MetricsController } from './metrics.controller.js';
import { MetricsService } from './metrics.service.js';
import { createRegistry, workerRestarts } from './registry.js';

/** Provides the registry, in which each feature declares its own metrics. */
@Global()
@Module({
  controllers: [MetricsController],
  providers: [
    MetricsService,
    {
      provide: Registry,
      useFactory: () => {
        const registry = createRegistry();
        workerRestarts(registry);
        // The metrics of all workers are summed up, so each worker counts one.
        new Gauge({
          name: 'plant_store_workers',
          help: 'Processes that serve requests.',
          registers: [registry],
        }).set(1);
        return registry;
      },
    },
  ],
  exports: [Registry],
})
export class MetricsModule {}
