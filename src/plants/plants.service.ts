import { Inject, Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { inSpan } from '../tracing/tracing.js';
import { BatchMetrics } from './batch-metrics.js';
import { Batcher } from './batcher.js';
import type { NewPlant } from './dto/new-plant.js';
import type { Plant } from './dto/plant.js';
import { PlantsRepository, type StoredPlant } from './plants.repository.js';

/**
 * What became of a plant: it is stored, now or before; or it was refused, because its id belongs to a different plant.
 */
type Outcome = 'created' | 'repeated' | 'refused';

@Injectable()
export class PlantsService {
  private readonly batcher: Batcher<NewPlant, Outcome>;
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    private readonly plants: PlantsRepository,
    @Inject(CONFIG) config: Config,
    batchMetrics: BatchMetrics,
    registry: Registry,
  ) {
    const { batchSize, batchesInFlight, timeout } = config.database;
    this.batcher = new Batcher(
      (batch) => this.store(batch),
      {
        size: batchSize,
        inFlight: batchesInFlight,
        queued: config.http.maxPendingRequests,
        wait: timeout,
      },
      batchMetrics,
    );
    this.outcomes = new Counter({
      name: 'plant_store_plants_total',
      help: 'Plants that reached the database, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
  }

  /**
   * Stores a plant, once. The same plant again (same id, name and tag) is a success that stores nothing.
   *
   * @throws ServiceError idTaken when the id belongs to a different plant; databaseUnavailable, overloaded
   */
  async create(plant: NewPlant): Promise<Plant> {
    const { id, name, tag } = plant;
    const outcome = await inSpan('store', {}, () => this.batcher.add(plant));
    this.outcomes.inc({ outcome });
    if (outcome === 'refused') {
      throw new ServiceError(
        ErrorCode.idTaken,
        `The id ${id} belongs to a different plant. Stored plants do not change: send this one under another id.`,
      );
    }
    return tag === undefined ? { name } : { name, tag };
  }

  /** Stores the plants of a batch, each with an outcome of its own. */
  private async store(plants: readonly NewPlant[]): Promise<Outcome[]> {
    // One statement takes an id once: the first plant that has it is sent, the others are compared.
    const firsts = new Map<bigint, NewPlant>();
    for (const plant of plants) {
      if (!firsts.has(plant.id)) firsts.set(plant.id, plant);
    }
    const created = await this.plants.insert([...firsts.values()]);
    if (created.length === plants.length) return plants.map(() => 'created');
    return this.compare(plants, firsts, new Set(created));
  }

  /**
   * Compares each plant with the one that is stored under its id. Stored plants never change, so a look after the insert
   * cannot be outdated.
   */
  private async compare(
    plants: readonly NewPlant[],
    firsts: ReadonlyMap<bigint, NewPlant>,
    created: ReadonlySet<bigint>,
  ): Promise<Outcome[]> {
    const taken = [...firsts.keys()].filter((id) => !created.has(id));
    const found = taken.length > 0 ? await this.plants.find(taken) : [];
    const stored = new Map(found.map((plant) => [BigInt(plant.id), plant]));
    return plants.map((plant) => {
      const { id } = plant;
      if (created.has(id) && firsts.get(id) === plant) return 'created';
      const other = created.has(id) ? firsts.get(id) : stored.get(id);
      // Only an administrator removes plants: no outcome would be true.
      if (other === undefined) throw new Error(`Plant ${id} was neither inserted nor found`);
      return isSamePlant(plant, other) ? 'repeated' : 'refused';
    });
  }
}

function isSamePlant(plant: NewPlant, other: NewPlant | StoredPlant): boolean {
  return plant.name === other.name && (plant.tag ?? null) === (other.tag ?? null);
}
