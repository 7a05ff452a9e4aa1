import { Inject, Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { QueryResult } from 'pg';
import { Counter, Registry } from 'prom-client';
import { Repository } from 'typeorm';
import { CONFIG, type Config } from '../config/config.js';
import { Batcher, BatchMetrics } from '../database/batcher.js';
import { runStatement } from '../database/run-statement.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import { inSpan } from '../logging/tracing.js';
import type { NewPlant } from './dto/new-plant.js';
import type { Plant } from './dto/plant.js';
import { PlantEntity } from './plant.entity.js';

/**
 * Of all who send an id, the primary key lets exactly one in. The rows that come back are those that were inserted;
 * the number of rows in the response is not to be believed: Citus counts what was selected.
 */
const INSERT = `
  INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO NOTHING
  RETURNING id`;

const INSERT_MANY = `
  INSERT INTO plants (id, name, tag)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
  ON CONFLICT (id) DO NOTHING
  RETURNING id`;

const SELECT = 'SELECT id, name, tag FROM plants WHERE id = ANY($1::bigint[])';

/** Stored, now or before; or refused, because the id belongs to a different plant. */
type Outcome = 'stored' | 'refused';

/** A plant as the database holds it; the id is its digits. */
type StoredPlant = Pick<PlantEntity, 'id' | 'name' | 'tag'>;

type InsertedRow = Pick<PlantEntity, 'id'>;

type Comparable = Pick<NewPlant | StoredPlant, 'name' | 'tag'>;

@Injectable()
export class PlantsService {
  private readonly batcher: Batcher<NewPlant, Outcome>;
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    @InjectRepository(PlantEntity) private readonly plants: Repository<PlantEntity>,
    @Inject(CONFIG) config: Config,
    batchMetrics: BatchMetrics,
    registry: Registry,
  ) {
    const { batchSize, batchesUnderWay, timeout } = config.database;
    this.batcher = new Batcher(
      (batch) => this.store(batch),
      {
        size: batchSize,
        underWay: batchesUnderWay,
        waiting: config.http.maxPendingRequests,
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
    if (outcome === 'refused') {
      throw new ServiceError(
        ErrorCode.idTaken,
        `The id ${id} belongs to a different plant. Stored plants do not change: send this one under another id.`,
      );
    }
    return tag === undefined ? { name } : { name, tag };
  }

  /** Stores plants that came at the same time, each with an outcome of its own. */
  private async store(plants: readonly NewPlant[]): Promise<Outcome[]> {
    // One statement takes an id once: the first plant that has it goes, the others are compared.
    const firsts = new Map<bigint, NewPlant>();
    for (const plant of plants) {
      if (!firsts.has(plant.id)) firsts.set(plant.id, plant);
    }
    const created = await this.insert([...firsts.values()]);
    const outcomes: Outcome[] =
      created.length === plants.length
        ? plants.map(() => 'stored')
        : await this.compare(plants, firsts, created);
    this.count(created.length, outcomes);
    return outcomes;
  }

  /** @returns the ids that were free, and are taken now */
  private async insert(plants: readonly NewPlant[]): Promise<string[]> {
    const { rows } = await (plants.length === 1
      ? this.insertOne(plants[0]!)
      : this.insertMany(plants));
    return rows.map(({ id }) => id);
  }

  private insertOne({ id, name, tag }: NewPlant): Promise<QueryResult<InsertedRow>> {
    return this.run<InsertedRow>(INSERT, [id, name, tag ?? null]);
  }

  private insertMany(plants: readonly NewPlant[]): Promise<QueryResult<InsertedRow>> {
    // Two processes that insert the same ids in different orders would wait for each other.
    const sorted = plants.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    return this.run<InsertedRow>(INSERT_MANY, [
      sorted.map(({ id }) => id),
      sorted.map(({ name }) => name),
      sorted.map(({ tag }) => tag ?? null),
    ]);
  }

  /**
   * Compares each plant with the one that is stored under its id. Stored plants never change, so a look after the insert
   * cannot be outdated.
   */
  private async compare(
    plants: readonly NewPlant[],
    firsts: ReadonlyMap<bigint, NewPlant>,
    created: readonly string[],
  ): Promise<Outcome[]> {
    const stored = new Map<bigint, Comparable>();
    for (const id of created) stored.set(BigInt(id), firsts.get(BigInt(id))!);
    const taken = [...firsts.keys()].filter((id) => !stored.has(id));
    if (taken.length > 0) {
      const { rows } = await this.run<StoredPlant>(SELECT, [taken]);
      for (const row of rows) stored.set(BigInt(row.id), row);
    }
    return plants.map((plant) => {
      const other = stored.get(plant.id);
      // Nobody but an administrator removes plants: neither outcome would be true.
      if (other === undefined) throw new Error(`Plant ${plant.id} was neither inserted nor found`);
      return isSamePlant(plant, other) ? 'stored' : 'refused';
    });
  }

  private count(created: number, outcomes: readonly Outcome[]): void {
    const refused = outcomes.filter((outcome) => outcome === 'refused').length;
    this.outcomes.inc({ outcome: 'created' }, created);
    this.outcomes.inc({ outcome: 'repeated' }, outcomes.length - refused - created);
    this.outcomes.inc({ outcome: 'refused' }, refused);
  }

  private run<Row extends object>(
    sql: string,
    parameters: readonly unknown[],
  ): Promise<QueryResult<Row>> {
    return runStatement<Row>(this.plants.manager.dataSource, sql, parameters);
  }
}

function isSamePlant(plant: NewPlant, other: Comparable): boolean {
  return plant.name === other.name && (plant.tag ?? null) === (other.tag ?? null);
}
