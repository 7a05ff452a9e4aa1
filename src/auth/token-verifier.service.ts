import { Inject, Injectable, type OnApplicationBootstrap } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import type { Logger } from 'pino';
import { Counter, Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { Batcher } from '../database/batcher.js';
import { tokenInvalid, tooManyAttempts } from '../errors/errors.js';
import { type ServiceError, reasonOf } from '../errors/service-error.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';

/** A revoked token works no longer than this, which is below the five seconds that operators are promised. */
const MAX_AGE_MS = 4000;

const MAX_CACHED_TOKENS = 10_000;

/** A JWT may have many kilobytes. */
const MAX_CACHED_CHARACTERS = 16 * 1024 * 1024;

/** The statement RECORD_USE stores a use once in this time: sent more often, it would change nothing. */
const USE_INTERVAL_MS = 60_000;

/** More than the guesses of a flood that arrive during one query. */
const MAX_BATCH_SIZE = 256;

/** Returns the caller with the token, or the reason why it is not valid. */
type Lookup = (token: string) => Promise<Caller | string>;

/** Checks tokens. Only one that was found invalid counts for its address: so invalid tokens never lock out a valid one. */
@Injectable()
export class TokenVerifierService implements OnApplicationBootstrap {
  /** The results of lookups. Requests with the same token share a lookup; one that fails is not cached. */
  private readonly cache = new LRUCache<string, Caller | string, Lookup>({
    max: MAX_CACHED_TOKENS,
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: (_result, token) => token.length,
    ttl: MAX_AGE_MS,
    fetchMethod: async (token, _stale, { context: lookup, options }) => {
      const startedAt = performance.now();
      this.lookupsInFlight++;
      try {
        const result = await lookup(token);
        const caller = typeof result === 'object' ? result : undefined;
        options.ttl = cacheTime(startedAt, caller);
        if (caller !== undefined) this.recordUse(caller);
        return result;
      } finally {
        this.lookupsInFlight--;
      }
    },
    // If the cache is full, and a running lookup leaves it, the requests that wait for it still get its result.
    ignoreFetchAbort: true,
  });
  private lookupsInFlight = 0;

  /** One query at a time looks up all access tokens that wait: a flood of guesses leaves the other connections to plants. */
  private readonly accessTokenLookups: Batcher<string, Caller | undefined>;
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
    @Inject(CONFIG) config: Config,
    @Inject(PINO_LOGGER) private readonly logger: Logger,
    registry: Registry,
  ) {
    const { auth, http, database } = config;
    this.accessTokenLookups = new Batcher((tokens) => accessTokens.findAll(tokens), {
      size: MAX_BATCH_SIZE,
      characters: Infinity,
      inFlight: 1,
      queued: http.maxPendingRequests,
      wait: database.timeout,
    });
    this.jwtVerifier = auth.oidc && new JwtVerifier(auth.oidc);
    this.failedAttempts = new FailedAttempts(auth.failuresPerMinute);
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens by outcome: cached (as valid), valid, invalid, limited (429), unchecked (could not be checked).',
      labelNames: ['outcome'],
      registers: [registry],
    });
    const lookups: Gauge = new Gauge({
      name: 'plant_store_token_lookups',
      help: 'Lookups of tokens in flight, in the database or at the issuer.',
      registers: [registry],
      collect: () => lookups.set(this.lookupsInFlight),
    });
  }

  /** Fetches the keys of the issuer, and logs why it cannot: otherwise, the first JWT would find it out. No start waits for it. */
  onApplicationBootstrap(): void {
    this.jwtVerifier?.loadKeys().catch((error: unknown) => {
      this.logger.error(`The tokens of OIDC_ISSUER cannot be checked: ${reasonOf(error as Error)}`);
    });
  }

  /**
   * Nearly every token is checked here, without a promise.
   *
   * @returns the caller with this token, if it was found valid a moment ago
   */
  findCached(token: string): Caller | undefined {
    const result = this.cache.get(token);
    if (typeof result !== 'object') return undefined;
    this.checks.inc({ outcome: 'cached' });
    return result;
  }

  /**
   * @returns the caller with this token
   * @throws ServiceError tokenInvalid when it is not valid; databaseUnavailable, issuerUnavailable or overloaded when it cannot
   *   be checked
   */
  async verify(token: string): Promise<Caller> {
    const lookup = this.lookupFor(token);
    if (typeof lookup === 'string') throw tokenInvalid(lookup);
    const result = await this.cache.fetch(token, { context: lookup }).catch((error: unknown) => {
      this.checks.inc({ outcome: 'unchecked' });
      throw error;
    });
    if (typeof result !== 'object') throw tokenInvalid(result);
    this.checks.inc({ outcome: 'valid' });
    return result;
  }

  /**
   * Counts an invalid token.
   *
   * @param refusal the error of `verify`
   * @returns the error for its request
   */
  countInvalid(address: string, refusal: ServiceError): ServiceError {
    const retryAfter = this.failedAttempts.record(address);
    this.checks.inc({ outcome: retryAfter === undefined ? 'invalid' : 'limited' });
    return retryAfter === undefined ? refusal : tooManyAttempts(retryAfter);
  }

  /** @returns the reason for a token that is invalid whatever the database or the issuer knows */
  private lookupFor(token: string): Lookup | string {
    if (isWellFormedAccessToken(token)) return this.findAccessToken;
    if (this.jwtVerifier === undefined) return 'it is not a token of this service, or not complete';
    return this.jwtVerifier.problemOf(token) ?? this.jwtVerifier.verify;
  }

  /** Requests with the same token share it, so it does not end when one client gives up. */
  private readonly findAccessToken: Lookup = async (token) =>
    (await this.accessTokenLookups.add(token, token.length, { closed: false })) ??
    'it is unknown, expired or revoked';

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
 * @returns milliseconds, at least 1, because lru-cache takes 0 as without end
 */
function cacheTime(startedAt: number, caller: Caller | undefined): number {
  const untilTooOld = startedAt + MAX_AGE_MS - performance.now();
  const untilExpired = (caller?.expiresAt ?? Infinity) - Date.now();
  return Math.max(1, Math.min(untilTooOld, untilExpired));
}
