import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Counter, Registry } from 'prom-client';
import { Repository } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import type { NewPlant } from './dto/new-plant.js';
import type { Plant } from './dto/plant.js';
import { PlantEntity } from './plant.entity.js';

/** Of all who send an id, the primary key lets exactly one in; the others get no row back. */
const INSERT = `
  INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)
  ON CONFLICT (id) DO NOTHING
  RETURNING id`;

const SELECT = 'SELECT name, tag FROM plants WHERE id = $1';

@Injectable()
export class PlantsService {
  private readonly outcomes: Counter<'outcome'>;

  constructor(
    @InjectRepository(PlantEntity) private readonly plants: Repository<PlantEntity>,
    registry: Registry,
  ) {
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
   * @throws ServiceError idTaken when the id belongs to a different plant; databaseUnavailable
   */
  async create(plant: NewPlant): Promise<Plant> {
    const { id, name, tag } = plant;
    const inserted = await this.run(INSERT, [id, name, tag ?? null]);
    const isCreated = inserted.length > 0;
    const isTaken = !isCreated && !(await this.isStored(plant));
    this.outcomes.inc({ outcome: isCreated ? 'created' : isTaken ? 'refused' : 'repeated' });
    if (isTaken) {
      throw new ServiceError(
        ErrorCode.idTaken,
        `The id ${id} belongs to a different plant. Stored plants do not change: send this one under another id.`,
      );
    }
    return tag === undefined ? { name } : { name, tag };
  }

  /** Stored plants never change, so a look after a lost insert cannot be outdated. */
  private async isStored({ id, name, tag }: NewPlant): Promise<boolean> {
    const [stored] = await this.run<Pick<PlantEntity, 'name' | 'tag'>>(SELECT, [id]);
    return stored?.name === name && stored.tag === (tag ?? null);
  }

  private run<Row extends object>(sql: string, parameters: readonly unknown[]): Promise<Row[]> {
    return runStatement<Row>(this.plants.manager.dataSource, sql, parameters);
  }
}
