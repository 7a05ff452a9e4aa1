import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { TooManyAttemptsError } from '../errors/service-error.js';

const WINDOW_MS = 60_000;

/** How many addresses are remembered; of more, those that were seen longest ago are forgotten. */
const MAX_ADDRESSES = 10_000;

/**
 * Counts tokens that were not valid by the address they came from. An attempt counts from its beginning:
 * otherwise as many as one likes could be under way at once.
 */
export class FailedAttempts {
  private readonly attempts = new LRUCache<string, number>({
    max: MAX_ADDRESSES,
    ttl: WINDOW_MS,
    noUpdateTTL: true,
  });

  /** @param limit failures that one address may cause in a minute */
  constructor(private readonly limit: number) {}

  /** @throws TooManyAttemptsError if the address has used up its failures */
  begin(address: string): void {
    const network = networkOf(address);
    const count = this.attempts.get(network) ?? 0;
    if (count >= this.limit) {
      const seconds = Math.ceil(this.attempts.getRemainingTTL(network) / 1000);
      throw new TooManyAttemptsError(Math.max(1, seconds));
    }
    this.attempts.set(network, count + 1);
  }

  /** The attempt was none: the token was valid. */
  forgive(address: string): void {
    const network = networkOf(address);
    const count = this.attempts.get(network);
    if (count !== undefined) this.attempts.set(network, Math.max(0, count - 1));
  }
}

/** Some proxies write the port, too: 192.0.2.1:80, [2001:db8::1]:80. */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([0-9a-f:.]+)\](?::\d+)?)$/i;

/** One customer usually has one IPv4 address, but 2^64 of IPv6. What is no address stands for itself. */
function networkOf(address: string): string {
  const [, v4, v6] = WITH_PORT.exec(address) ?? [];
  const plain = v4 ?? v6 ?? address;
  if (!ipaddr.isValid(plain)) return plain.slice(0, 100);
  return ipaddr.process(plain).toByteArray().slice(0, 8).join('.');
}
