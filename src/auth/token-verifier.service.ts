import { Inject, Injectable } from '@nestjs/common';
import type { Logger } from 'pino';
import { Counter, Gauge, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { overloaded, TooManyAttemptsError } from '../errors/service-error.js';
import { PINO_LOGGER } from '../logging/logging.module.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';
import { VerdictCache, type Verdict } from './verdict-cache.js';

/** The statement RECORD_USE stores a use once in this time: sent more often, it would change nothing. */
const USE_INTERVAL_MS = 60_000;

/** How tokens of one format are looked up and limited. */
interface Source {
  /** @returns the caller with this token, or undefined if it is not valid */
  readonly find: (token: string) => Promise<Caller | undefined>;
  /** The lookups in flight, by token. */
  readonly lookUps: Map<string, Promise<Caller | undefined>>;
  readonly failedAttempts: FailedAttempts;
}

/** Checks tokens, with a cached verdict if there is one. */
@Injectable()
export class TokenVerifierService {
  private readonly verdicts = new VerdictCache();
  /**
   * Each source has limits of its own: neither an issuer that hangs nor guesses of another format may delay or
   * refuse a valid token.
   */
  private readonly sources: Readonly<Record<'own' | 'jwt' | 'other', Source>>;
  private readonly checks: Counter<'outcome'>;

  constructor(
    private readonly accessTokens: AccessTokensService,
    @Inject(CONFIG) private readonly config: Config,
    @Inject(PINO_LOGGER) private readonly logger: Logger,
    registry: Registry,
  ) {
    const { auth, database } = config;
    const source = (find: Source['find']): Source => ({
      find,
      lookUps: new Map(),
      failedAttempts: new FailedAttempts(auth.failuresPerMinute, database.timeout),
    });
    const none = () => Promise.resolve(undefined);
    const jwtVerifier = auth.oidc && new JwtVerifier(auth.oidc);
    this.sources = {
      own: source((token) => accessTokens.find(token)),
      jwt: source(jwtVerifier === undefined ? none : (token) => jwtVerifier.verify(token)),
      other: source(none),
    };
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens that were checked, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    const lookUps: Gauge = new Gauge({
      name: 'plant_store_token_lookups',
      help: 'Lookups of tokens in flight.',
      registers: [registry],
      collect: () => {
        const sources = Object.values(this.sources);
        lookUps.set(sources.reduce((sum, source) => sum + source.lookUps.size, 0));
      },
    });
  }

  /**
   * Nearly every token is checked here, without a promise.
   *
   * @returns the caller with this token, if the verdict that it is valid is cached
   */
  findCached(token: string): Caller | undefined {
    const verdict = this.verdicts.get(token);
    if (verdict === undefined) return undefined;
    if (this.verdicts.isStale(verdict)) {
      // If the lookup fails, the verdict expires, and the next request waits for a lookup and gets its error.
      this.lookUp(token).catch(() => undefined);
    }
    this.recordUse(verdict);
    // It means a cached verdict. The name stays, because dashboards and alerts of operators use it.
    this.checks.inc({ outcome: 'remembered' });
    return verdict.caller;
  }

  /**
   * Checks a token without a cached verdict.
   *
   * @param address the client's, for counting failures
   * @returns the caller with this token, or undefined if it is not valid
   * @throws ServiceError databaseUnavailable, issuerUnavailable or overloaded when there is no verdict;
   *   TooManyAttemptsError when the address sent too many invalid tokens
   */
  async verify(token: string, address: string): Promise<Caller | undefined> {
    try {
      // A token that was valid is exempt from the limit: other clients of its address must not lock it out.
      const caller = this.verdicts.wasValid(token)
        ? await this.lookUp(token)
        : await this.attempt(token, address);
      this.checks.inc({ outcome: caller === undefined ? 'invalid' : 'valid' });
      return caller;
    } catch (error) {
      const isLimited = error instanceof TooManyAttemptsError;
      this.checks.inc({ outcome: isLimited ? 'limited' : 'unjudged' });
      throw error;
    }
  }

  /** Checks a token that is not known to have been valid: the failures of its address are limited. */
  private async attempt(token: string, address: string): Promise<Caller | undefined> {
    const { failedAttempts, lookUps } = this.sourceOf(token);
    const isNeeded = () =>
      !this.verdicts.isInvalid(token) &&
      this.verdicts.get(token) === undefined &&
      !lookUps.has(token);
    const checked = await failedAttempts.run(address, isNeeded, async () => {
      const caller = await this.lookUp(token);
      // Counted here, before the next request of the address continues.
      if (caller === undefined) failedAttempts.count(address);
      return { caller };
    });
    if (checked !== undefined) return checked.caller;
    if (this.verdicts.isInvalid(token)) {
      failedAttempts.count(address);
      return undefined;
    }
    // This request joins the lookup in flight. An invalid token counts once, for the request that began the lookup.
    return this.verdicts.get(token)?.caller ?? this.lookUp(token);
  }

  /** Looks a token up once, however many requests wait for the verdict. */
  private async lookUp(token: string): Promise<Caller | undefined> {
    const { find, lookUps } = this.sourceOf(token);
    const inFlight = lookUps.get(token);
    if (inFlight !== undefined) return inFlight;
    if (lookUps.size >= this.config.http.maxPendingRequests) throw overloaded();
    const startedAt = performance.now();
    const lookUp = find(token)
      .then((caller) => {
        if (caller === undefined) this.verdicts.setInvalid(token);
        else this.recordUse(this.verdicts.setValid(token, caller, startedAt));
        return caller;
      })
      .finally(() => lookUps.delete(token));
    lookUps.set(token, lookUp);
    return lookUp;
  }

  private sourceOf(token: string): Source {
    if (isWellFormedAccessToken(token)) return this.sources.own;
    return JwtVerifier.isJwt(token) ? this.sources.jwt : this.sources.other;
  }

  /** Stores the use in the background: no request waits for it. */
  private recordUse(verdict: Verdict): void {
    const now = performance.now();
    const { tokenId } = verdict.caller;
    if (tokenId === undefined || now - verdict.useRecordedAt < USE_INTERVAL_MS) return;
    verdict.useRecordedAt = now;
    this.accessTokens.recordUse(tokenId).catch((error: unknown) => {
      this.logger.warn(`The last use of a token could not be written: ${String(error)}`);
    });
  }
}
