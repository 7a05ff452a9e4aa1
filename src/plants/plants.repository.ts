import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { QueryResult } from 'pg';
import { Repository } from 'typeorm';
import { prepared, runStatement, type PreparedStatement } from '../database/run-statement.js';
import type { NewPlant } from './dto/plant.js';
import { PlantEntity } from './plant.entity.js';

/**
 * The first plant with an id wins, and RETURNING lists the inserted ids.
 *
 * `DO UPDATE … WHERE false` locks a plant that is already stored, and never changes it. Because of the lock, the commit
 * waits for the synchronous standbys. A stored plant may not have reached them yet, for example after a crash: it could
 * be lost in a failover, so it must not be acknowledged without this wait.
 */
const KEEP_STORED = `
  ON CONFLICT (id) DO UPDATE SET name = excluded.name WHERE false
  RETURNING id`;

const insertStatements: PreparedStatement[] = [];

/** For one plant, or the plants of one shard: Citus sends rows in VALUES directly to their shard. */
function insertValues(count: number): PreparedStatement {
  return (insertStatements[count] ??= prepared(`
    INSERT INTO plants (id, name, tag)
    VALUES ${Array.from({ length: count }, (_, i) => `($${3 * i + 1}, $${3 * i + 2}, $${3 * i + 3})`).join(', ')}
    ${KEEP_STORED}`));
}

/** For any plants. Citus would first collect the rows of the SELECT on the coordinator. */
const INSERT_MANY = prepared(`
  INSERT INTO plants (id, name, tag)
  SELECT id, name, tag FROM unnest($1::bigint[], $2::text[], $3::text[]) AS sent (id, name, tag)
  ${KEEP_STORED}`);

const SELECT = prepared('SELECT id, name, tag FROM plants WHERE id = ANY($1::bigint[])');

/** A plant as the database returns it, with the id as decimal digits. */
export type StoredPlant = Pick<PlantEntity, 'id' | 'name' | 'tag'>;

@Injectable()
export class PlantsRepository {
  constructor(@InjectRepository(PlantEntity) private readonly plants: Repository<PlantEntity>) {}

  /**
   * Inserts the plants whose ids are free.
   *
   * @param plants without two of the same id
   * @param areInShard whether all of them are in one shard of a distributed table
   * @returns the ids of the inserted plants
   * @throws ServiceError databaseUnavailable
   */
  async insert(plants: readonly NewPlant[], areInShard: boolean): Promise<bigint[]> {
    // Two processes that insert the same ids in different orders could deadlock.
    const sorted = plants.toSorted((a, b) => (a.id < b.id ? -1 : 1));
    const { rows } = await (areInShard || plants.length === 1
      ? this.run<Pick<StoredPlant, 'id'>>(
          insertValues(plants.length),
          sorted.flatMap(({ id, name, tag }) => [id, name, tag ?? null]),
        )
      : this.run<Pick<StoredPlant, 'id'>>(INSERT_MANY, [
          sorted.map(({ id }) => id),
          sorted.map(({ name }) => name),
          sorted.map(({ tag }) => tag ?? null),
        ]));
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

  private run<Row extends object>(
    statement: PreparedStatement,
    parameters: unknown[],
  ): Promise<QueryResult<Row>> {
    return runStatement<Row>(this.plants.manager.dataSource, statement, parameters);
  }
}
