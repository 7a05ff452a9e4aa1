import { LRUCache } from 'lru-cache';
import type { Caller } from './caller.js';

/**
 * How long a verdict is believed at most: a token that is revoked stops working everywhere within this
 * time. Asking again in time works behind every pooler and through every fail-over, which a notification
 * does not; the promise to operators is five seconds, and the rest is for the look-up itself.
 */
const MAX_AGE_MS = 4000;

/** An older verdict is looked up again while it is still believed, so that no request waits for it. */
const REFRESH_AGE_MS = 2000;

/** How many tokens of each kind are remembered; of more, those that were used longest ago are forgotten. */
const CACHE_SIZE = 10_000;

/** That a token is valid. */
export interface Verdict {
  readonly caller: Caller;
  /** When the look-up began: the verdict may be as old as that. */
  readonly askedAt: number;
  /** When the use of the token was written down last. */
  useRecordedAt: number;
}

/**
 * Verdicts about tokens, by the hash of the token, so that no token stays in memory. Ages are measured with a clock that
 * nobody can set back.
 */
export class VerdictCache {
  /** Entries outlive MAX_AGE_MS: they tell which tokens were valid. */
  private readonly valid = new LRUCache<string, Verdict>({ max: CACHE_SIZE });
  /** Apart from the valid ones, so that guesses cannot push those out. */
  private readonly invalid = new LRUCache<string, true>({ max: CACHE_SIZE, ttl: MAX_AGE_MS });

  /** @returns the verdict on a token that is valid, as long as it is believed */
  get(key: string): Verdict | undefined {
    const verdict = this.valid.get(key);
    if (verdict === undefined) return undefined;
    const { askedAt, caller } = verdict;
    const isExpired = caller.expiresAt !== undefined && caller.expiresAt <= Date.now();
    return !isExpired && performance.now() - askedAt < MAX_AGE_MS ? verdict : undefined;
  }

  isStale({ askedAt }: Verdict): boolean {
    return performance.now() - askedAt >= REFRESH_AGE_MS;
  }

  /** Whether the token was valid, however long ago. */
  wasValid(key: string): boolean {
    return this.valid.has(key);
  }

  isInvalid(key: string): boolean {
    return this.invalid.has(key);
  }

  setValid(key: string, caller: Caller, askedAt: number): Verdict {
    const useRecordedAt = this.valid.peek(key)?.useRecordedAt ?? -Infinity;
    const verdict = { caller, askedAt, useRecordedAt };
    this.valid.set(key, verdict);
    return verdict;
  }

  setInvalid(key: string): void {
    this.valid.delete(key);
    this.invalid.set(key, true);
  }
}
