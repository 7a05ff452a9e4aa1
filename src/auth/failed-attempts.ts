import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { TooManyAttemptsError } from '../errors/service-error.js';

const WINDOW_MS = 60_000;

/** How many addresses are remembered; of more, those that failed longest ago are forgotten. */
const MAX_ADDRESSES = 10_000;

/** Counts the tokens that were not valid, by the address they came from, and refuses more of them. */
export class FailedAttempts {
  private readonly failures = new LRUCache<string, number>({
    max: MAX_ADDRESSES,
    ttl: WINDOW_MS,
    noUpdateTTL: true,
  });

  /** @param limit failures that one address may cause in a minute */
  constructor(private readonly limit: number) {}

  add(address: string): void {
    const network = networkOf(address);
    this.failures.set(network, (this.failures.get(network) ?? 0) + 1);
  }

  /** @throws TooManyAttemptsError if the address has used up its failures */
  refuseTooMany(address: string): void {
    const network = networkOf(address);
    if ((this.failures.get(network) ?? 0) >= this.limit) {
      const seconds = Math.ceil(this.failures.getRemainingTTL(network) / 1000);
      throw new TooManyAttemptsError(Math.max(1, seconds));
    }
  }
}

/** One customer usually has one IPv4 address, but 2^64 of IPv6. What is no address counts as one. */
function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return 'none';
  return ipaddr.process(address).toByteArray().slice(0, 8).join('.');
}
