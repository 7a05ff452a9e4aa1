import { Global, Module } from '@nestjs/common';
import { Gauge, Registry } from 'prom-client';
import { MetricsController } from './metrics.controller.js';
import { MetricsService } from './metrics.service.js';
import { createRegistry, workerRestarts } from './registry.js';

/** Offers the registry; every feature declares its own metrics in it. */
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
        // Of all workers, the sum is shown.
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
