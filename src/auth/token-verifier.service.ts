import { hash } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { Counter, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { TooManyAttemptsError } from '../errors/service-error.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';
import { LookUps } from './look-ups.js';
import { VerdictCache, type Verdict } from './verdict-cache.js';

const USE_INTERVAL_MS = 60_000;

/** What a token could be, by its form: one of ours, one of an issuer, or neither. */
type TokenKind = 'own' | 'jwt' | 'other';

/** Tells whom a token stands for, from memory if it can. */
@Injectable()
export class TokenVerifierService {
  private readonly logger = new Logger('Tokens');
  private readonly verdicts = new VerdictCache();
  /** Apart from each other, so that an issuer that hangs does not hold up tokens of our own. */
  private readonly lookUps: Readonly<Record<TokenKind, LookUps>>;
  /** Apart, too: tokens of no known form cost no look-up, and must not lock out a token that was never seen. */
  private readonly failedAttempts: Readonly<Record<TokenKind, FailedAttempts>>;
  private readonly jwtVerifier: JwtVerifier | undefined;
  private readonly checks: Counter<'outcome'>;

  constructor(
    private readonly accessTokens: AccessTokensService,
    @Inject(CONFIG) { auth, database, http }: Config,
    registry: Registry,
  ) {
    this.lookUps = forEachKind(() => new LookUps(http.maxPendingRequests));
    this.failedAttempts = forEachKind(
      () => new FailedAttempts(auth.failuresPerMinute, database.timeout),
    );
    this.jwtVerifier = auth.oidc && new JwtVerifier(auth.oidc);
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens that were checked, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
  }

  /** @returns whom the token stands for, if that is in memory; it is for nearly every request, so no promise */
  recall(token: string): Caller | undefined {
    const key = keyOf(token);
    const verdict = this.verdicts.get(key);
    if (verdict === undefined) return undefined;
    if (this.verdicts.isStale(verdict)) {
      // If this fails, the verdict grows old, and the request that then has to wait gets the error.
      this.lookUp(key, token).catch(() => undefined);
    }
    this.recordUse(verdict);
    this.checks.inc({ outcome: 'remembered' });
    return verdict.caller;
  }

  /**
   * Judges a token that cannot be recalled.
   *
   * @param address the client's, for counting failures
   * @returns whom the token stands for, or undefined if it is not valid
   * @throws ServiceError databaseUnavailable, issuerUnavailable or overloaded when that cannot be found
   *   out; TooManyAttemptsError when the address sent too many tokens that were not valid
   */
  async verify(token: string, address: string): Promise<Caller | undefined> {
    const key = keyOf(token);
    try {
      // A token that was valid is judged whatever else comes from its address: a noisy neighbour must
      // not lock it out.
      const caller = this.verdicts.wasValid(key)
        ? await this.lookUp(key, token)
        : await this.attempt(key, token, address);
      this.checks.inc({ outcome: caller === undefined ? 'invalid' : 'valid' });
      return caller;
    } catch (error) {
      const isLimited = error instanceof TooManyAttemptsError;
      this.checks.inc({ outcome: isLimited ? 'limited' : 'unjudged' });
      throw error;
    }
  }

  /** Judges a token that was not valid before: the failures of its address are limited. */
  private async attempt(key: string, token: string, address: string): Promise<Caller | undefined> {
    const failedAttempts = this.failedAttempts[kindOf(token)];
    failedAttempts.refuseIfTooMany(address);
    const verdict = await failedAttempts.run(
      address,
      () => !this.isJudged(key),
      async () => {
        const caller = await this.lookUp(key, token);
        // Before the next request of the address is let go on.
        if (caller === undefined) failedAttempts.count(address);
        return { caller };
      },
    );
    if (verdict !== undefined) return verdict.caller;
    if (this.verdicts.isInvalid(key)) {
      failedAttempts.count(address);
      return undefined;
    }
    // The verdict counts for the request that began the look-up.
    return this.verdicts.get(key)?.caller ?? this.lookUp(key, token);
  }

  /** Whether there is a verdict, or will be without another look-up. */
  private isJudged(key: string): boolean {
    return (
      this.verdicts.isInvalid(key) ||
      this.verdicts.get(key) !== undefined ||
      Object.values(this.lookUps).some((lookUps) => lookUps.has(key))
    );
  }

  private lookUp(key: string, token: string): Promise<Caller | undefined> {
    const kind = kindOf(token);
    return this.lookUps[kind].run(key, async () => {
      const askedAt = performance.now();
      const caller = await this.find(kind, token);
      if (caller === undefined) this.verdicts.setInvalid(key);
      else this.recordUse(this.verdicts.setValid(key, caller, askedAt));
      return caller;
    });
  }

  private async find(kind: TokenKind, token: string): Promise<Caller | undefined> {
    if (kind === 'own') return this.accessTokens.find(token);
    return kind === 'jwt' ? this.jwtVerifier?.verify(token) : undefined;
  }

  /** Beside the request, not in its way. */
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

function forEachKind<Value>(make: () => Value): Record<TokenKind, Value> {
  return { own: make(), jwt: make(), other: make() };
}

function keyOf(token: string): string {
  return hash('sha256', token, 'base64');
}

function kindOf(token: string): TokenKind {
  if (isWellFormedAccessToken(token)) return 'own';
  return JwtVerifier.isJwt(token) ? 'jwt' : 'other';
}
