import { Inject, Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { CONFIG, type AppConfig } from '../config/config.js';
import { Batcher } from '../database/batcher.js';
import type { Shards } from '../database/shards.js';
import { idTaken } from '../errors/errors.js';
import type { Client } from '../http/client.js';
import { inSpan } from '../tracing/tracing.js';
import { batchLimits, SHARDS } from './batch-limits.js';
import { BatchMetrics } from './batch-metrics.js';
import { TEXT_FIELDS, type NewPlant, type Plant } from './dto/plant.js';
import { PlantsRepository } from './plants.repository.js';
import { storePlants, type Outcome } from './store-plants.js';

@Injectable()
export class PlantsService {
  private readonly batcher: Batcher<NewPlant, Outcome>;
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    plants: PlantsRepository,
    @Inject(SHARDS) shards: Shards | undefined,
    @Inject(CONFIG) config: AppConfig,
    registry: Registry,
  ) {
    this.batcher = new Batcher(
      (batch) => storePlants(plants, batch, shards !== undefined),
      batchLimits(config, shards),
      new BatchMetrics(registry, () => this.batcher.queueLength),
    );
    this.outcomes = new Counter({
      name: 'plant_store_plants_total',
      help: 'Plants that reached the database, by outcome: created, repeated, refused.',
      labelNames: ['outcome'],
      registers: [registry],
    });
  }

  /**
   * Stores a plant, once. The same plant again, with the same fields, is a success that stores nothing.
   *
   * @param client that waits for the response: the plant of one that has given up is not sent to the database
   * @throws ServiceError idTaken when the id belongs to a different plant; databaseUnavailable, overloaded; ConnectionClosed
   */
  async create(plant: NewPlant, client: Client): Promise<Plant> {
    const { id, ...texts } = plant;
    const outcome = await inSpan('store', {}, () =>
      this.batcher.add(plant, charactersOf(plant), client),
    );
    this.outcomes.inc({ outcome });
    if (outcome === 'refused') throw idTaken(id);
    return texts;
  }
}

/** How many characters its texts have. */
function charactersOf(plant: NewPlant): number {
  let sum = 0;
  for (const field of TEXT_FIELDS) sum += plant[field]?.length ?? 0;
  return sum;
}
