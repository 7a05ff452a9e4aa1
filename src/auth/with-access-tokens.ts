import type { DatabaseConfig } from '../config/config.js';
import { withRepository } from '../database/with-repository.js';
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
  return withRepository(config, AccessTokenEntity, (tokens) =>
    action(new AccessTokensService(tokens)),
  );
}
