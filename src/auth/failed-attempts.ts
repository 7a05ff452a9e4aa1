import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { overloaded, TooManyAttemptsError } from '../errors/service-error.js';

const WINDOW_MS = 60_000;

/** Beyond this number, the failures of the least recently seen address are dropped. */
const MAX_ADDRESSES = 10_000;

/** The lookups of one address that are in flight, and the requests that wait for one of them to end. */
interface LookUps {
  inFlight: number;
  waiting: (() => void)[];
}

/**
 * Limits the invalid tokens that an address may send. Only verdicts count: a token whose lookup is in flight or
 * has failed is not a failure.
 *
 * For each address, lookups in flight and failures together stay within the limit; further requests wait for a
 * verdict. Otherwise a burst of guesses would all be looked up before the first one is known to be wrong.
 */
export class FailedAttempts {
  private readonly failures = new LRUCache<string, number>({
    max: MAX_ADDRESSES,
    ttl: WINDOW_MS,
    noUpdateTTL: true,
  });
  private readonly lookUps = new Map<string, LookUps>();

  /**
   * @param limit failures that one address may cause in a minute
   * @param maxWait how long a request may wait for lookups of the same address, in milliseconds; checked each time one
   *   of them ends, so the wait can be longer by one lookup
   */
  constructor(
    private readonly limit: number,
    private readonly maxWait: number,
  ) {}

  /** Counts the verdict that a token was not valid. */
  count(address: string): void {
    const network = networkOf(address);
    this.failures.set(network, this.countOf(network) + 1);
  }

  /**
   * Runs a lookup as soon as the limit of its address allows it.
   *
   * @param isNeeded called again after each wait, because another request may have sent the same token
   * @param lookUp must register its lookup synchronously, so that `isNeeded` sees it
   * @returns undefined when the lookup is not needed any more
   * @throws TooManyAttemptsError when the address has used up its failures; ServiceError overloaded after `maxWait`;
   *   any error of `lookUp`
   */
  async run<Result extends object>(
    address: string,
    isNeeded: () => boolean,
    lookUp: () => Promise<Result>,
  ): Promise<Result | undefined> {
    const network = networkOf(address);
    const startedAt = performance.now();
    // Also before the loop: a token that is known to be invalid needs no lookup, but counts as a failure.
    this.refuseIfTooMany(network);
    while (isNeeded()) {
      this.refuseIfTooMany(network);
      const lookUps = this.lookUps.get(network) ?? { inFlight: 0, waiting: [] };
      this.lookUps.set(network, lookUps);
      if (lookUps.inFlight + this.countOf(network) < this.limit) {
        lookUps.inFlight++;
        try {
          return await lookUp();
        } finally {
          lookUps.inFlight--;
          if (lookUps.inFlight === 0) this.lookUps.delete(network);
          for (const resume of lookUps.waiting.splice(0)) resume();
        }
      }
      if (performance.now() - startedAt >= this.maxWait) throw overloaded();
      await new Promise<void>((resolve) => lookUps.waiting.push(resolve));
    }
    return undefined;
  }

  private refuseIfTooMany(network: string): void {
    if (this.countOf(network) < this.limit) return;
    const seconds = Math.ceil(this.failures.getRemainingTTL(network) / 1000);
    throw new TooManyAttemptsError(Math.max(1, seconds));
  }

  private countOf(network: string): number {
    return this.failures.get(network) ?? 0;
  }
}

/** Some proxies add the port: 192.0.2.1:80, [2001:db8::1]:80. */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([0-9a-f:.]+)\](?::\d+)?)$/i;

/** IPv6 addresses count by their /64 network, because one customer usually has a whole /64. */
function networkOf(address: string): string {
  const plain = address.replace(WITH_PORT, '$1$2');
  // A proxy may forward any text; the key must stay small.
  if (!ipaddr.isValid(plain)) return plain.slice(0, 100);
  return ipaddr.process(plain).toByteArray().slice(0, 8).join('.');
}
