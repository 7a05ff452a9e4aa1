import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Caller } from './caller.js';

/**
 * How long a verdict may be used. A revoked token works no longer than this, which is below the five seconds that
 * operators are promised. A time limit also works behind poolers and through failovers, unlike LISTEN/NOTIFY.
 */
const MAX_AGE_MS = 4000;

/** From this age on, a verdict is refreshed in the background, so that no request waits for the lookup. */
const STALE_AGE_MS = 2000;

/** The most verdicts in each cache. Beyond this number, the least recently used verdict is removed. */
const CACHE_SIZE = 10_000;

/** The verdict that a token is valid. */
export interface Verdict {
  readonly caller: Caller;
  /** When the lookup began: the verdict may be as old as that. */
  readonly lookedUpAt: number;
  /** When the use of the token was last stored. */
  useRecordedAt: number;
}

/**
 * Cached verdicts about tokens. Ages are measured with a monotonic clock, which nobody can set back.
 */
export class VerdictCache {
  /** Verdicts stay beyond MAX_AGE_MS: a token that was valid is exempt from the limit on guesses. */
  private readonly valid = new LRUCache<string, Verdict>({ max: CACHE_SIZE });
  /** By hash, because a guess may be long. A cache of its own, so that guesses cannot displace valid tokens. */
  private readonly invalid = new LRUCache<string, true>({ max: CACHE_SIZE, ttl: MAX_AGE_MS });

  /** @returns the verdict that the token is valid, if it is recent enough */
  get(token: string): Verdict | undefined {
    const verdict = this.valid.get(token);
    if (verdict === undefined) return undefined;
    const { lookedUpAt, caller } = verdict;
    const isExpired = caller.expiresAt !== undefined && caller.expiresAt <= Date.now();
    return !isExpired && performance.now() - lookedUpAt < MAX_AGE_MS ? verdict : undefined;
  }

  isStale({ lookedUpAt }: Verdict): boolean {
    return performance.now() - lookedUpAt >= STALE_AGE_MS;
  }

  /** Whether the token was valid, however long ago. */
  wasValid(token: string): boolean {
    return this.valid.has(token);
  }

  isInvalid(token: string): boolean {
    return this.invalid.has(hashOf(token));
  }

  setValid(token: string, caller: Caller, lookedUpAt: number): Verdict {
    const useRecordedAt = this.valid.peek(token)?.useRecordedAt ?? -Infinity;
    const verdict = { caller, lookedUpAt, useRecordedAt };
    this.valid.set(token, verdict);
    return verdict;
  }

  setInvalid(token: string): void {
    this.valid.delete(token);
    this.invalid.set(hashOf(token), true);
  }
}

const hashOf = (token: string): string => hash('sha256', token, 'base64');
