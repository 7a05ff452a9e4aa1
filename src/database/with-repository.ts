import { DataSource, type ObjectLiteral, type Repository } from 'typeorm';
import type { DatabaseConfig } from '../config/config.js';
import { timedOptions } from './database-options.js';

/**
 * Runs `action` with a repository of its own connections, for what happens outside Nest's application. The schema must be up to
 * date.
 */
export async function withRepository<Entity extends ObjectLiteral, Result>(
  config: DatabaseConfig,
  entity: new () => Entity,
  action: (repository: Repository<Entity>) => Promise<Result>,
): Promise<Result> {
  const dataSource = new DataSource({ ...timedOptions(config), entities: [entity] });
  await dataSource.initialize();
  try {
    return await action(dataSource.getRepository(entity));
  } finally {
    await dataSource.destroy();
  }
}
