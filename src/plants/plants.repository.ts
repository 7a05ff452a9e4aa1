import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { QueryResult } from 'pg';
import { Repository } from 'typeorm';
import { prepared, runStatement, type PreparedStatement } from '../database/run-statement.js';
import { PLANT_FIELDS, type NewPlant } from './dto/plant.js';
import { PlantEntity, type StoredPlant } from './plant.entity.js';

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

const COLUMNS = PLANT_FIELDS.join(', ');

const insertStatements: PreparedStatement[] = [];

/** For one plant, or the plants of one shard: Citus sends rows in VALUES directly to their shard. */
function insertValues(count: number): PreparedStatement {
  return (insertStatements[count] ??= prepared(`
    INSERT INTO plants (${COLUMNS})
    VALUES ${Array.from({ length: count }, (_, row) => `(${parametersOf(row).join(', ')})`).join(', ')}
    ${KEEP_STORED}`));
}

/** Those of a row: `$1, $2, $3` for row 0, `$4, …` for row 1. */
function parametersOf(row: number): string[] {
  return PLANT_FIELDS.map((_, i) => `$${row * PLANT_FIELDS.length + i + 1}`);
}

/** For any plants. Citus would first collect the rows of the SELECT on the coordinator. */
const INSERT_MANY = prepared(`
  INSERT INTO plants (${COLUMNS})
  SELECT ${COLUMNS}
  FROM unnest(${parametersOf(0)
    .map((parameter, i) => `${parameter}::${PLANT_FIELDS[i] === 'id' ? 'bigint' : 'text'}[]`)
    .join(', ')}) AS sent (${COLUMNS})
  ${KEEP_STORED}`);

const SELECT = prepared(`SELECT ${COLUMNS} FROM plants WHERE id = ANY($1::bigint[])`);

@Injectable()
export class PlantsRepository {
  constructor(@InjectRepository(PlantEntity) private readonly plants: Repository<StoredPlant>) {}

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
          sorted.flatMap((plant) => PLANT_FIELDS.map((field) => plant[field] ?? null)),
        )
      : this.run<Pick<StoredPlant, 'id'>>(
          INSERT_MANY,
          PLANT_FIELDS.map((field) => sorted.map((plant) => plant[field] ?? null)),
        ));
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
