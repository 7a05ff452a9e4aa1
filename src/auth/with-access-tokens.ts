import type { DatabaseConfig } from '../config/config.js';
import { databaseOptions } from '../database/database-options.js';
import { withDataSource } from '../database/with-data-source.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { AccessTokensService } from './access-tokens.service.js';

/**
 * Runs `action` with an AccessTokensService; the schema must be up to date. It is made without Nest: the messages of a second
 * application would appear in the log of the service.
 */
export function withAccessTokens<Result>(
  config: DatabaseConfig,
  action: (tokens: AccessTokensService) => Promise<Result>,
): Promise<Result> {
  const options = { ...databaseOptions(config), entities: [AccessTokenEntity] };
  return withDataSource(options, (dataSource) =>
    action(new AccessTokensService(dataSource.getRepository(AccessTokenEntity))),
  );
}
