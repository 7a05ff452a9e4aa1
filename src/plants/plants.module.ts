import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import type { Logger } from 'pino';
import { DataSource } from 'typeorm';
import { findShards } from '../database/shards.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import { SHARDS } from './batch-limits.js';
import { PlantEntity } from './plant.entity.js';
import { PlantsController } from './plants.controller.js';
import { PlantsRepository } from './plants.repository.js';
import { PlantsService } from './plants.service.js';

@Module({
  imports: [TypeOrmModule.forFeature([PlantEntity])],
  controllers: [PlantsController],
  providers: [
    PlantsService,
    PlantsRepository,
    {
      provide: SHARDS,
      inject: [DataSource, PINO_LOGGER],
      useFactory: async (dataSource: DataSource, logger: Logger) => {
        const shards = await findShards(dataSource, 'plants');
        if (shards !== undefined) {
          logger.info(`The plants are distributed over ${shards.count} shards.`);
        }
        return shards;
      },
    },
  ],
})
export class PlantsModule {}
