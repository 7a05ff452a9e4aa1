import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { QueryResult } from 'pg';
import { Repository } from 'typeorm';
import { isDistributed } from '../database/is-distributed.js';
import { poolOf, runStatement } from '../database/run-statement.js';
import type { NewPlant } from './dto/plant.js';
import { PlantEntity } from './plant.entity.js';

/**
 * The first plant with an id wins. RETURNING lists the inserted ids; the row count of the result is not reliable, because
 * Citus counts the rows of the SELECT in INSERT_MANY. One plant alone is cheaper with VALUES.
 *
 * `DO UPDATE … WHERE false` locks a plant that is already stored, and never changes it. Because of the lock, the commit
 * waits for the synchronous standbys. A stored plant may not have reached them yet, for example after a crash: it could
 * be lost in a fail-over, so it must not be acknowledged without this wait.
 */
const LOCK_STORED = `
  ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE false
  RETURNING id`;

const INSERT = `
  INSERT INTO plants (id, name, tag) VALUES ($1, $2, $3)
  ${LOCK_STORED}`;

const INSERT_MANY = `
  INSERT INTO plants (id, name, tag)
  SELECT * FROM unnest($1::bigint[], $2::text[], $3::text[])
  ${LOCK_STORED}`;

const SELECT = 'SELECT id, name, tag FROM plants WHERE id = ANY($1::bigint[])';

/** A plant as the database returns it, with the id as decimal digits. */
export type StoredPlant = Pick<PlantEntity, 'id' | 'name' | 'tag'>;

@Injectable()
export class PlantsRepository {
  constructor(@InjectRepository(PlantEntity) private readonly plants: Repository<PlantEntity>) {}

  /**
   * Inserts the plants whose ids are free.
   *
   * @param plants without two of the same id
   * @returns the ids of the inserted plants
   * @throws ServiceError databaseUnavailable
   */
  async insert(plants: readonly NewPlant[]): Promise<bigint[]> {
    // Two processes that insert the same ids in different orders could deadlock.
    const sorted = plants.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const columns = [
      sorted.map(({ id }) => id),
      sorted.map(({ name }) => name),
      sorted.map(({ tag }) => tag ?? null),
    ];
    const { rows } = await (plants.length === 1
      ? this.run<Pick<StoredPlant, 'id'>>(INSERT, columns.flat())
      : this.run<Pick<StoredPlant, 'id'>>(INSERT_MANY, columns));
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

  /**
   * @returns whether the plants are on several servers, so that a statement about several plants needs several of them
   * @throws ServiceError databaseUnavailable
   */
  areDistributed(): Promise<boolean> {
    const { manager, metadata } = this.plants;
    return isDistributed(manager.dataSource, metadata.tablePath);
  }

  /** Calls `listener` after every new connection to the database. */
  onConnect(listener: () => void): void {
    poolOf(this.plants.manager.dataSource).on('connect', listener);
  }

  private run<Row extends object>(sql: string, parameters: unknown[]): Promise<QueryResult<Row>> {
    return runStatement<Row>(this.plants.manager.dataSource, sql, parameters);
  }
}
