import { hash } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Counter, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { TooManyAttemptsError } from '../errors/service-error.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';
import { Questions } from './questions.js';

/**
 * How long a verdict is believed at most: a token that is revoked stops working everywhere within this
 * time. Asking again in time works behind every pooler and through every fail-over, which a notification
 * does not; the promise to operators is five seconds, and the rest is for the question itself.
 */
const MAX_AGE_MS = 4000;

/** A verdict older than this is asked for again while it still counts, so that no request waits for it. */
const REFRESH_AGE_MS = 2000;

/** How many tokens of each kind are remembered; of more, those that were used longest ago are forgotten. */
const CACHE_SIZE = 10_000;

const USE_INTERVAL_MS = 60_000;

interface Verdict {
  readonly caller: Caller;
  /** When it was asked for, not when the answer came: the answer may be as old as the question. */
  readonly askedAt: number;
  useRecordedAt: number;
}

/**
 * Tells who a token stands for, from memory if it can. Ages are measured with a clock that nobody can set
 * back.
 */
@Injectable()
export class TokenVerifierService {
  private readonly logger = new Logger('Tokens');
  /** By hash, so that no token stays in memory for long. Entries outlive MAX_AGE_MS: they tell what was valid. */
  private readonly valid = new LRUCache<string, Verdict>({ max: CACHE_SIZE });
  /** Apart from the valid ones, so that guesses cannot push those out. */
  private readonly invalid = new LRUCache<string, true>({ max: CACHE_SIZE, ttl: MAX_AGE_MS });
  /** Apart from each other, so that an issuer that hangs does not hold up tokens of our own. */
  private readonly ownQuestions: Questions;
  private readonly jwtQuestions: Questions;
  /** Apart, too: junk is refused without a question, and must not lock out a token that was never seen. */
  private readonly failedAttempts: Readonly<Record<TokenKind, FailedAttempts>>;
  private readonly jwtVerifier: JwtVerifier | undefined;
  private readonly checks: Counter<'outcome'>;

  constructor(
    private readonly accessTokens: AccessTokensService,
    @Inject(CONFIG) config: Config,
    registry: Registry,
  ) {
    this.ownQuestions = new Questions(config.http.maxPendingRequests);
    this.jwtQuestions = new Questions(config.http.maxPendingRequests);
    const newFailedAttempts = () =>
      new FailedAttempts(config.auth.failuresPerMinute, config.database.timeout);
    this.failedAttempts = {
      own: newFailedAttempts(),
      jwt: newFailedAttempts(),
      junk: newFailedAttempts(),
    };
    this.jwtVerifier = config.auth.oidc && new JwtVerifier(config.auth.oidc);
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens that were checked, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
  }

  /**
   * @returns who the token stands for, if that is in memory; the answer to nearly every request, so no promise
   */
  recall(token: string): Caller | undefined {
    const key = keyOf(token);
    const now = performance.now();
    const known = this.believed(key, now);
    if (known === undefined) return undefined;
    if (now - known.askedAt >= REFRESH_AGE_MS) {
      // If this fails, the verdict grows old, and the request that then has to wait gets the error.
      this.ask(key, token).catch(() => undefined);
    }
    this.recordUse(known, now);
    this.checks.inc({ outcome: 'remembered' });
    return known.caller;
  }

  /**
   * Judges a token that cannot be recalled.
   *
   * @param address the client's, for counting failures
   * @returns who the token stands for, or undefined if it is not valid
   * @throws ServiceError databaseUnavailable, issuerUnavailable or overloaded when that cannot be found
   *   out; TooManyAttemptsError when the address sent too many tokens that were not valid
   */
  async verify(token: string, address: string): Promise<Caller | undefined> {
    const key = keyOf(token);
    try {
      // A token that was valid is judged whatever else comes from its address: a noisy neighbour must
      // not lock it out.
      const caller = this.valid.has(key)
        ? await this.ask(key, token)
        : await this.attempt(key, token, address);
      this.checks.inc({ outcome: caller === undefined ? 'invalid' : 'valid' });
      return caller;
    } catch (error) {
      const isLimited = error instanceof TooManyAttemptsError;
      this.checks.inc({ outcome: isLimited ? 'limited' : 'unjudged' });
      throw error;
    }
  }

  private believed(key: string, now: number): Verdict | undefined {
    const known = this.valid.get(key);
    return known !== undefined && isBelieved(known, now) ? known : undefined;
  }

  /** Judges a token that was not valid before: the failures of its address are limited. */
  private async attempt(key: string, token: string, address: string): Promise<Caller | undefined> {
    const failedAttempts = this.failedAttempts[kindOf(token)];
    failedAttempts.refuseIfTooMany(address);
    if (await failedAttempts.begin(address, () => !this.isJudged(key))) {
      try {
        const caller = await this.ask(key, token);
        if (caller === undefined) failedAttempts.count(address);
        return caller;
      } finally {
        failedAttempts.end(address);
      }
    }
    if (this.invalid.has(key)) {
      failedAttempts.count(address);
      return undefined;
    }
    // Its verdict counts for the request that asked first.
    return this.believed(key, performance.now())?.caller ?? this.ask(key, token);
  }

  /** Whether there is a verdict, or will be without another look-up. */
  private isJudged(key: string): boolean {
    return (
      this.invalid.has(key) ||
      this.ownQuestions.has(key) ||
      this.jwtQuestions.has(key) ||
      this.believed(key, performance.now()) !== undefined
    );
  }

  private async ask(key: string, token: string): Promise<Caller | undefined> {
    const { accessTokens, jwtVerifier } = this;
    switch (kindOf(token)) {
      case 'own':
        return this.ownQuestions.ask(key, () => this.remember(key, () => accessTokens.find(token)));
      case 'jwt':
        return (
          jwtVerifier &&
          this.jwtQuestions.ask(key, () => this.remember(key, () => jwtVerifier.verify(token)))
        );
      case 'junk':
        return undefined;
    }
  }

  private async remember(
    key: string,
    find: () => Promise<Caller | undefined>,
  ): Promise<Caller | undefined> {
    const askedAt = performance.now();
    const caller = await find();
    if (caller === undefined) {
      this.valid.delete(key);
      this.invalid.set(key, true);
    } else {
      const useRecordedAt = this.valid.peek(key)?.useRecordedAt ?? -Infinity;
      const verdict = { caller, askedAt, useRecordedAt };
      this.valid.set(key, verdict);
      this.recordUse(verdict, performance.now());
    }
    return caller;
  }

  /** Beside the request, not in its way. */
  private recordUse(verdict: Verdict, now: number): void {
    const { tokenId } = verdict.caller;
    if (tokenId === undefined || now - verdict.useRecordedAt < USE_INTERVAL_MS) return;
    verdict.useRecordedAt = now;
    this.accessTokens.recordUse(tokenId).catch((error: unknown) => {
      this.logger.warn(`The last use of a token could not be written: ${String(error)}`);
    });
  }
}

function isBelieved({ askedAt, caller }: Verdict, now: number): boolean {
  const isExpired = caller.expiresAt !== undefined && caller.expiresAt <= Date.now();
  return !isExpired && now - askedAt < MAX_AGE_MS;
}

function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}

/** What a token could be, by its form: one of ours, one of an issuer, or none. */
type TokenKind = 'own' | 'jwt' | 'junk';

function kindOf(token: string): TokenKind {
  if (isWellFormedAccessToken(token)) return 'own';
  return JwtVerifier.isJwt(token) ? 'jwt' : 'junk';
}
