import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { QueryResult } from 'pg';
import { Repository } from 'typeorm';
import { runStatement } from '../database/run-statement.js';
import type { NewPlant } from './dto/new-plant.js';
import { PlantEntity } from './plant.entity.js';

/**
 * Of all plants with one id, the primary key lets exactly one in. The rows that come back are those that were inserted;
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

/** A plant as the database holds it; the id is its digits. */
export type StoredPlant = Pick<PlantEntity, 'id' | 'name' | 'tag'>;

type InsertedRow = Pick<PlantEntity, 'id'>;

@Injectable()
export class PlantsRepository {
  constructor(@InjectRepository(PlantEntity) private readonly plants: Repository<PlantEntity>) {}

  /**
   * Inserts the plants whose ids are free.
   *
   * @param plants each with another id
   * @returns the ids that were free, and are taken now
   * @throws ServiceError databaseUnavailable
   */
  async insert(plants: readonly NewPlant[]): Promise<bigint[]> {
    const { rows } = await (plants.length === 1
      ? this.insertOne(plants[0]!)
      : this.insertMany(plants));
    return rows.map(({ id }) => BigInt(id));
  }

  /**
   * @returns the plants that are stored under these ids
   * @throws ServiceError databaseUnavailable
   */
  async find(ids: readonly bigint[]): Promise<StoredPlant[]> {
    const { rows } = await this.run<StoredPlant>(SELECT, [ids]);
    return rows;
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

  private run<Row extends object>(
    sql: string,
    parameters: readonly unknown[],
  ): Promise<QueryResult<Row>> {
    return runStatement<Row>(this.plants.manager.dataSource, sql, parameters);
  }
}
