// Connections of a command or of the start, outside Nest's application.

import { DataSource } from 'typeorm';
import type { PostgresDataSourceOptions } from 'typeorm/driver/postgres/PostgresDataSourceOptions.js';
import { databaseUnavailable } from '../errors/errors.js';

/**
 * Runs `work` with connections of its own.
 *
 * @throws ServiceError databaseUnavailable when no connection can be made; or the error of `work`
 */
export async function withDataSource<Result>(
  options: PostgresDataSourceOptions,
  work: (dataSource: DataSource) => Promise<Result>,
): Promise<Result> {
  const dataSource = new DataSource(options);
  try {
    await dataSource.initialize();
  } catch (error) {
    throw databaseUnavailable(error);
  }
  try {
    return await work(dataSource);
  } finally {
    await dataSource.destroy();
  }
}
