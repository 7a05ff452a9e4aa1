import { Injectable } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import type { Client } from '../http/client.js';
import { inSpan } from '../tracing/tracing.js';
import { BatchLimitsService } from './batch-limits.service.js';
import { BatchMetrics } from './batch-metrics.js';
import { Batcher } from './batcher.js';
import type { NewPlant, Plant } from './dto/plant.js';
import { TEXT_FIELDS } from './plant-fields.js';
import { PlantsRepository, type StoredPlant } from './plants.repository.js';

/** Repeated: the same plant was stored before. Refused: the id belongs to a different plant. */
type Outcome = 'created' | 'repeated' | 'refused';

@Injectable()
export class PlantsService {
  private readonly batcher: Batcher<NewPlant, Outcome>;
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    private readonly plants: PlantsRepository,
    private readonly batchLimits: BatchLimitsService,
    registry: Registry,
  ) {
    this.batcher = new Batcher(
      (batch) => this.store(batch),
      batchLimits.limits,
      new BatchMetrics(registry, () => this.batcher.queueLength),
    );
    this.outcomes = new Counter({
      name: 'plant_store_plants_total',
      help: 'Plants that reached the database, by outcome.',
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
    const { id, name, tag } = plant;
    const outcome = await inSpan('store', {}, () =>
      this.batcher.add(plant, charactersOf(plant), client),
    );
    this.outcomes.inc({ outcome });
    if (outcome === 'refused') throw idTaken(id);
    return tag === undefined ? { name } : { name, tag };
  }

  /** @returns the outcome of each plant, in the same order */
  private async store(plants: readonly NewPlant[]): Promise<Outcome[]> {
    // If several plants have one id, only the first is sent: a returned id then belongs to one plant.
    const firsts = new Map<bigint, NewPlant>();
    for (const plant of plants) {
      if (!firsts.has(plant.id)) firsts.set(plant.id, plant);
    }
    const inserted = await this.plants.insert([...firsts.values()], this.batchLimits.isByShard);
    if (inserted.length === plants.length) return plants.map(() => 'created');

    const created = new Set(inserted);
    const taken = [...firsts.keys()].filter((id) => !created.has(id));
    // Stored plants never change, so reading them after the insert is safe.
    const found = taken.length > 0 ? await this.plants.find(taken) : [];
    const stored = new Map(found.map((plant) => [BigInt(plant.id), plant]));
    return plants.map((plant) => {
      const { id } = plant;
      const storedOrSent = created.has(id) ? firsts.get(id) : stored.get(id);
      if (storedOrSent === plant) return 'created';
      // An administrator deleted the row between the two statements: no outcome is true, so this batch fails.
      if (storedOrSent === undefined) throw new Error(`Plant ${id} was neither inserted nor found`);
      return isSamePlant(plant, storedOrSent) ? 'repeated' : 'refused';
    });
  }
}

/** How many characters its texts have. */
function charactersOf(plant: NewPlant): number {
  let sum = 0;
  for (const field of TEXT_FIELDS) sum += plant[field]?.length ?? 0;
  return sum;
}

export function idTaken(id: bigint): ServiceError {
  return new ServiceError(
    ErrorCode.idTaken,
    `The id ${id} belongs to a different plant. Stored plants do not change: send this one under another id.`,
  );
}

function isSamePlant(plant: NewPlant, other: NewPlant | StoredPlant): boolean {
  return plant.name === other.name && (plant.tag ?? null) === (other.tag ?? null);
}
