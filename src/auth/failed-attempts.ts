import ipaddr from 'ipaddr.js';
import { LRUCache } from 'lru-cache';
import { overloaded, TooManyAttemptsError } from '../errors/service-error.js';

const WINDOW_MS = 60_000;

/** How many addresses are remembered; of more, those that were seen longest ago are forgotten. */
const MAX_ADDRESSES = 10_000;

/** The look-ups for one address that have no verdict yet, and the requests that wait for one of them to end. */
interface LookUps {
  inFlight: number;
  waiting: (() => void)[];
}

/**
 * Limits the tokens that an address may send without being valid. Only verdicts count: a token that is being looked
 * up, or could not be judged, is not a failure.
 *
 * As many look-ups as failures are left may be in flight for an address; more wait for a verdict. Otherwise a burst
 * of guesses would all be looked up before the first of them is known to be wrong.
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
   * @param maxWait how long a request may wait for look-ups of the same address, in milliseconds
   */
  constructor(
    private readonly limit: number,
    private readonly maxWait: number,
  ) {}

  /** @throws TooManyAttemptsError if the address has used up its failures */
  refuseIfTooMany(address: string): void {
    const network = networkOf(address);
    if (this.countOf(network) < this.limit) return;
    const seconds = Math.ceil(this.failures.getRemainingTTL(network) / 1000);
    throw new TooManyAttemptsError(Math.max(1, seconds));
  }

  /** Counts a verdict: the token was not valid. */
  count(address: string): void {
    const network = networkOf(address);
    this.failures.set(network, this.countOf(network) + 1);
  }

  /**
   * Looks a token up, when fewer look-ups of its address are in flight than failures are left.
   *
   * @param isNeeded asked before, and again whenever it had to wait: another request may have sent the same token
   * @param find begins the look-up at once, so that `isNeeded` knows of it
   * @returns undefined when the look-up is not needed any more
   * @throws TooManyAttemptsError when verdicts that came in the meantime use up the failures; ServiceError overloaded;
   *   and whatever `find` throws
   */
  async run<Verdict extends object>(
    address: string,
    isNeeded: () => boolean,
    find: () => Promise<Verdict>,
  ): Promise<Verdict | undefined> {
    const network = networkOf(address);
    const startedAt = performance.now();
    for (;;) {
      if (!isNeeded()) return undefined;
      this.refuseIfTooMany(address);
      const lookUps = this.lookUps.get(network) ?? { inFlight: 0, waiting: [] };
      this.lookUps.set(network, lookUps);
      if (lookUps.inFlight + this.countOf(network) < this.limit) {
        lookUps.inFlight++;
        try {
          return await find();
        } finally {
          this.end(network, lookUps);
        }
      }
      if (performance.now() - startedAt >= this.maxWait) throw overloaded();
      await new Promise<void>((resolve) => lookUps.waiting.push(resolve));
    }
  }

  private end(network: string, lookUps: LookUps): void {
    lookUps.inFlight--;
    if (lookUps.inFlight === 0) this.lookUps.delete(network);
    for (const goOn of lookUps.waiting.splice(0)) goOn();
  }

  private countOf(network: string): number {
    return this.failures.get(network) ?? 0;
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
