import { createHash } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Counter, Registry } from 'prom-client';
import { CONFIG, type Config } from '../config/config.js';
import { isWellFormedAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { Caller } from './caller.js';
import { overloaded, TooManyAttemptsError } from '../errors/service-error.js';
import { FailedAttempts } from './failed-attempts.js';
import { JwtVerifier } from './jwt-verifier.js';

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

/** Tells who a token stands for, from memory if it can. */
@Injectable()
export class TokenVerifierService {
  private readonly logger = new Logger('Tokens');
  /** By hash, so that no token stays in memory. Entries outlive MAX_AGE_MS: they tell what was valid. */
  private readonly valid = new LRUCache<string, Verdict>({ max: CACHE_SIZE });
  /** Apart from the valid ones, so that guesses cannot push those out. */
  private readonly invalid = new LRUCache<string, true>({ max: CACHE_SIZE, ttl: MAX_AGE_MS });
  private readonly questions = new Map<string, Promise<Caller | undefined>>();
  private readonly checks: Counter<'outcome'>;
  private readonly maxQuestions: number;
  private readonly failedAttempts: FailedAttempts;
  private readonly jwtVerifier: JwtVerifier | undefined;

  constructor(
    private readonly accessTokens: AccessTokensService,
    @Inject(CONFIG) config: Config,
    registry: Registry,
  ) {
    this.checks = new Counter({
      name: 'plant_store_token_checks_total',
      help: 'Tokens that were checked, by outcome.',
      labelNames: ['outcome'],
      registers: [registry],
    });
    this.maxQuestions = config.http.maxPendingRequests;
    this.failedAttempts = new FailedAttempts(config.auth.failuresPerMinute);
    this.jwtVerifier = config.auth.oidc && new JwtVerifier(config.auth.oidc);
  }

  /**
   * @param address the client's, for counting failures
   * @returns who the token stands for, or undefined if it is not valid
   * @throws ServiceError databaseUnavailable or issuerUnavailable when that cannot be found out;
   *   TooManyAttemptsError when the address sent too many tokens that were not valid
   */
  async verify(token: string, address: string): Promise<Caller | undefined> {
    const key = createHash('sha256').update(token).digest('base64');
    const known = this.valid.get(key);
    const remembered = this.recall(key, token, known);
    if (remembered !== undefined) {
      this.checks.inc({ outcome: 'remembered' });
      return remembered;
    }
    try {
      const caller = await this.judge(key, token, address, known);
      if (caller === undefined) this.failedAttempts.add(address);
      this.checks.inc({ outcome: caller === undefined ? 'invalid' : 'valid' });
      return caller;
    } catch (error) {
      const isLimited = error instanceof TooManyAttemptsError;
      this.checks.inc({ outcome: isLimited ? 'limited' : 'unjudged' });
      throw error;
    }
  }

  /** The verdict from memory, if it may still be believed. */
  private recall(key: string, token: string, known: Verdict | undefined): Caller | undefined {
    if (known === undefined) return undefined;
    const age = Date.now() - known.askedAt;
    if (age >= MAX_AGE_MS || isExpired(known.caller)) return undefined;
    if (age >= REFRESH_AGE_MS) {
      // If this fails, the verdict grows old, and the request that then has to wait gets the error.
      this.ask(key, token).catch(() => undefined);
    }
    this.recordUse(known);
    return known.caller;
  }

  private async judge(
    key: string,
    token: string,
    address: string,
    known: Verdict | undefined,
  ): Promise<Caller | undefined> {
    // A token that was valid is judged whatever else comes from its address: a noisy neighbour must not
    // lock it out.
    if (known === undefined) this.failedAttempts.refuseTooMany(address);
    if (this.invalid.has(key)) return undefined;
    const caller = await this.ask(key, token);
    const verdict = this.valid.get(key);
    if (verdict !== undefined) this.recordUse(verdict);
    return caller;
  }

  /** Asks once, however many requests want to know, and remembers the answer. */
  private async ask(key: string, token: string): Promise<Caller | undefined> {
    let question = this.questions.get(key);
    if (question === undefined) {
      if (this.questions.size >= this.maxQuestions) throw overloaded();
      question = this.askAndRemember(key, token).finally(() => this.questions.delete(key));
      this.questions.set(key, question);
    }
    return question;
  }

  private async askAndRemember(key: string, token: string): Promise<Caller | undefined> {
    const askedAt = Date.now();
    const caller = await this.lookUp(token);
    if (caller === undefined) {
      this.valid.delete(key);
      this.invalid.set(key, true);
    } else {
      const useRecordedAt = this.valid.peek(key)?.useRecordedAt ?? 0;
      this.valid.set(key, { caller, askedAt, useRecordedAt });
    }
    return caller;
  }

  private async lookUp(token: string): Promise<Caller | undefined> {
    if (isWellFormedAccessToken(token)) return this.accessTokens.find(token);
    return this.jwtVerifier?.verify(token);
  }

  /** Beside the request, not in its way. */
  private recordUse(verdict: Verdict): void {
    const { tokenId } = verdict.caller;
    const now = Date.now();
    if (tokenId === undefined || now - verdict.useRecordedAt < USE_INTERVAL_MS) return;
    verdict.useRecordedAt = now;
    this.accessTokens.recordUse(tokenId).catch((error: unknown) => {
      this.logger.warn(`The last use of a token could not be written: ${String(error)}`);
    });
  }
}

function isExpired({ expiresAt }: Caller): boolean {
  return expiresAt !== undefined && expiresAt <= Date.now();
}
