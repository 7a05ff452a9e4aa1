// Checks tokens. Only a wrong one is counted for its address, afterwards: so wrong tokens never lock out a valid one.

import { Inject, Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import pLimit, { type LimitFunction } from 'p-limit';
import type { Logger } from 'pino';
import { Counter, Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import {
  overloaded,
  tokenInvalid,
  tooManyAttempts,
  type ServiceError,
} from '../errors/service-error.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';

/**
 * A revoked token works no longer than this, which is below the five seconds that operators are promised. A time limit also
 * works behind poolers and through failovers, unlike LISTEN/NOTIFY.
 */
const MAX_AGE_MS = 4000;

const MAX_CACHED_TOKENS = 10_000;

/** A JWT may have many kilobytes. */
const MAX_CACHED_CHARACTERS = 16 * 1024 * 1024;

/** The statement RECORD_USE stores a use once in this time: sent more often, it would change nothing. */
const USE_INTERVAL_MS = 60_000;

type LookUp = (token: string) => Promise<Caller | undefined>;

@Injectable()
export class TokenVerifierService {
  /** The results of lookups. Requests with the same token share a lookup; one that fails is not cached. */
  private readonly cache = new LRUCache<string, Caller | 'invalid', LookUp>({
    max: MAX_CACHED_TOKENS,
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (_result, token) => token.length,
    ttl: MAX_AGE_MS,
    fetchMethod: async (token, _stale, { context: lookUp, options }) => {
      const startedAt = performance.now();
      const caller = await lookUp(token);
      options.ttl = cacheTime(startedAt, caller);
      if (caller === undefined) return 'invalid';
      this.recordUse(caller);
      return caller;
    },
    // A lookup whose place in the cache is needed still ends for the requests that wait for it.
    ignoreFetchAbort: true,
  });

  /** Limits the lookups in the database at a time: a flood of guesses must leave connections for plants. */
  private readonly limitLookUps: LimitFunction;
  /** undefined without an identity provider. */
  private readonly jwtVerifier: JwtVerifier | undefined;
  private readonly failedAttempts: FailedAttempts;
  /** The ids of the tokens whose use was stored a short time ago. */
  private readonly recentUses = new LRUCache<string, true>({
    max: MAX_CACHED_TOKENS,
    ttl: USE_INTERVAL_MS,
  });
  private readonly checks: Counter<'outcome'>;

  constructor(
    private readonly accessTokens: AccessTokensService,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(PINO_LOGGER) private readonly logger: Logger,
    registry: Registry,
  ) {
    const { auth, database } = config;
    const limitLookUps = pLimit(Math.max(1, Math.floor(database.poolSize / 2)));
    this.limitLookUps = limitLookUps;
    this.jwtVerifier = auth.oidc && new JwtVerifier(auth.oidc);
    this.failedAttempts = new FailedAttempts(auth.failuresPerMinute);
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens that were checked, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    const lookUps: Gauge = new Gauge({
      name: 'plant_store_token_lookups',
      help: 'Lookups of access tokens in the database that run or wait.',
      registers: [registry],
      collect: () => lookUps.set(limitLookUps.activeCount + limitLookUps.pendingCount),
    });
  }

  /**
   * Nearly every token is checked here, without a promise.
   *
   * @returns the caller with this token, if it was found valid a moment ago
   */
  findCached(token: string): Caller | undefined {
    const result = this.cache.get(token);
    if (result === undefined || result === 'invalid') return undefined;
    this.checks.inc({ outcome: 'cached' });
    return result;
  }

  /**
   * @returns the caller with this token; undefined if it is not valid
   * @throws ServiceError databaseUnavailable, issuerUnavailable or overloaded when the token cannot be checked
   */
  async verify(token: string): Promise<Caller | undefined> {
    const lookUp = this.lookUpOf(token);
    if (lookUp === undefined) return undefined;
    try {
      const result = await this.cache.fetch(token, { context: lookUp });
      if (result === undefined || result === 'invalid') return undefined;
      this.checks.inc({ outcome: 'valid' });
      return result;
    } catch (error) {
      this.checks.inc({ outcome: 'unchecked' });
      throw error;
    }
  }

  /**
   * Counts a token that is not valid.
   *
   * @returns the error for its request
   */
  refuse(address: string): ServiceError {
    const retryAfter = this.failedAttempts.count(address);
    this.checks.inc({ outcome: retryAfter === undefined ? 'invalid' : 'limited' });
    return retryAfter === undefined ? tokenInvalid() : tooManyAttempts(retryAfter);
  }

  /** @returns undefined for a token that is wrong whatever the database or the issuer knows */
  private lookUpOf(token: string): LookUp | undefined {
    if (isWellFormedAccessToken(token)) return this.findAccessToken;
    return this.jwtVerifier?.isMeantForThisService(token) ? this.jwtVerifier.verify : undefined;
  }

  private readonly findAccessToken: LookUp = async (token) => {
    const { http, database } = this.config;
    if (this.limitLookUps.pendingCount >= http.maxPendingRequests) throw overloaded();
    const startedAt = performance.now();
    return this.limitLookUps(() => {
      // Its client has waited for long enough: the lookups before it may each have waited for a timeout.
      if (performance.now() - startedAt > database.timeout) throw overloaded();
      return this.accessTokens.find(token);
    });
  };

  /** Stores the use in the background: no request waits for it. */
  private recordUse({ tokenId }: Caller): void {
    if (tokenId === undefined || this.recentUses.has(tokenId)) return;
    this.recentUses.set(tokenId, true);
    this.accessTokens.recordUse(tokenId).catch((error: unknown) => {
      this.logger.warn(`The last use of a token could not be written: ${String(error)}`);
    });
  }
}

/**
 * @param startedAt when the lookup began: the token may have been revoked right after that
 * @returns milliseconds, above 0, which would mean without end
 */
function cacheTime(startedAt: number, caller: Caller | undefined): number {
  const untilTooOld = startedAt + MAX_AGE_MS - performance.now();
  const untilExpired = (caller?.expiresAt ?? Infinity) - Date.now();
  return Math.max(1, Math.min(untilTooOld, untilExpired));
}
