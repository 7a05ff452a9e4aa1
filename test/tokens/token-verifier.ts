import { pino } from 'pino';
import { Registry } from 'prom-client';
import { DataSource, Repository } from 'typeorm';
import { AccessTokenEntity } from '../../src/auth/access-token.entity.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { TokenVerifierService } from '../../src/auth/token-verifier.service.js';
import { readConfig } from '../../src/config/config.js';

/** A verifier of tokens without a service around it. */
export interface TestVerifier {
  readonly verifier: TokenVerifierService;
  /** The messages that it logged. */
  readonly log: readonly string[];
  /** The lookups in flight. */
  lookups(): Promise<number>;
  /** The number of checks by outcome. */
  outcomes(): Promise<Record<string, number>>;
}

/**
 * @param env settings that differ from the defaults
 * @param accessTokens by default those of a database that is not open
 */
export function openVerifier(
  env: Record<string, string>,
  accessTokens = new AccessTokensService(
    new Repository(AccessTokenEntity, new DataSource({ type: 'postgres' }).manager),
  ),
): TestVerifier {
  const log: string[] = [];
  const write = (line: string) => void log.push((JSON.parse(line) as { msg: string }).msg);
  const registry = new Registry();
  const valuesOf = async (name: string) => (await registry.getSingleMetric(name)!.get()).values;
  return {
    verifier: new TokenVerifierService(
      accessTokens,
      readConfig(env),
      pino({}, { write }),
      registry,
    ),
    log,
    lookups: async () => (await valuesOf('plant_store_token_lookups'))[0]!.value,
    outcomes: async () => {
      const values = await valuesOf('plant_store_token_checks_total');
      return Object.fromEntries(
        values.map(({ labels, value }) => [String(labels['outcome']), value]),
      );
    },
  };
}
