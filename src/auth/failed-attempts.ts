import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';

const WINDOW_MS = 60_000;

/** Beyond this number, the invalid tokens of the least recently seen address are forgotten. */
const MAX_ADDRESSES = 10_000;

/** Counts the invalid tokens of each address, in a minute that begins with the first of them. */
export class FailedAttempts {
  private readonly counts = new LRUCache<string, number>({
    max: MAX_ADDRESSES,
    ttl: WINDOW_MS,
    noUpdateTTL: true,
  });

  /** @param limit the invalid tokens that an address may send in a minute */
  constructor(private readonly limit: number) {}

  /**
   * Counts an invalid token.
   *
   * @returns undefined within the limit; beyond it, the seconds until its minute ends
   */
  record(address: string): number | undefined {
    const network = networkOf(address);
    const count = (this.counts.get(network) ?? 0) + 1;
    this.counts.set(network, count);
    if (count <= this.limit) return undefined;
    return Math.max(1, Math.ceil(this.counts.getRemainingTTL(network) / 1000));
  }
}

/** Some proxies add the port: 192.0.2.1:80, [2001:db8::1]:80. */
const WITH_PORT = /^(?:(\d+\.\d+\.\d+\.\d+):\d+|\[([0-9a-f:.]+)\](?::\d+)?)$/i;

/** IPv6 addresses count by their /64 network, because one customer usually has a whole /64. */
function networkOf(address: string): string {
  const plain = address.replace(WITH_PORT, '$1$2');
  // A proxy may forward any text; the key must stay small.
  if (!ipaddr.isValid(plain)) return plain.slice(0, 100);
  // All four bytes of IPv4, the first eight of IPv6.
  return ipaddr.process(plain).toByteArray().slice(0, 8).join('.');
}
