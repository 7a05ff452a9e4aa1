import { setTimeout as delay } from 'node:timers/promises';
import type { JSONWebKeySet } from 'jose';

const FETCH_TIMEOUT_MS = 2000;

/** The issuer is asked no more often than this, whoever sends what, and whether it answers or not. */
const COOLDOWN_MS = 1000;

/** A key that the issuer has withdrawn is believed for this long, longer only while the issuer is away. */
const MAX_AGE_MS = 5 * 60_000;

/** The public keys of an issuer, found by OpenID Connect Discovery and kept for a while. */
export class IssuerKeys {
  private keys: JSONWebKeySet | undefined;
  private fetchedAt = -Infinity;
  private triedAt = -Infinity;
  private fetching: Promise<JSONWebKeySet> | undefined;

  constructor(private readonly issuer: string) {}

  /**
   * The keys as far as they are known; asked for when there are none, and again when they are old.
   *
   * @throws when there are none and the issuer does not answer
   */
  async current(): Promise<JSONWebKeySet> {
    if (this.keys === undefined) {
      // Nobody waits in line for an issuer that has just failed.
      if (this.fetching === undefined && this.isCoolingDown()) {
        throw new Error('The issuer failed a moment ago');
      }
      return this.fetch();
    }
    if (performance.now() - this.fetchedAt >= MAX_AGE_MS) {
      this.fetch().catch(() => undefined);
    }
    return this.keys;
  }

  /**
   * Keys that were asked for after `known`, which may take as long as the pause between two questions.
   *
   * @throws when the issuer does not answer
   */
  newerThan(known: JSONWebKeySet): Promise<JSONWebKeySet> {
    return this.keys !== undefined && this.keys !== known
      ? Promise.resolve(this.keys)
      : this.fetch();
  }

  /** One question at a time, for all who wait. */
  private fetch(): Promise<JSONWebKeySet> {
    this.fetching ??= this.fetchAfterCooldown().finally(() => (this.fetching = undefined));
    return this.fetching;
  }

  private async fetchAfterCooldown(): Promise<JSONWebKeySet> {
    if (this.isCoolingDown()) await delay(this.triedAt + COOLDOWN_MS - performance.now());
    this.triedAt = performance.now();
    this.keys = await fetchKeys(this.issuer);
    this.fetchedAt = this.triedAt;
    return this.keys;
  }

  private isCoolingDown(): boolean {
    return performance.now() - this.triedAt < COOLDOWN_MS;
  }
}

/** OpenID Connect Discovery 1.0, section 4, and RFC 7517 section 5. */
async function fetchKeys(issuer: string): Promise<JSONWebKeySet> {
  const metadata = await fetchJson(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`);
  // Section 4.3: otherwise one issuer could speak for another.
  if (metadata['issuer'] !== issuer)
    throw new Error('The metadata of the issuer names another one');
  const keys = await fetchJson(String(metadata['jwks_uri']));
  if (!Array.isArray(keys['keys'])) throw new Error('The keys of the issuer are no key set');
  return { keys: keys['keys'] as JSONWebKeySet['keys'] };
}

async function fetchJson(url: string): Promise<Record<string, unknown>> {
  const response = await fetch(url, {
    signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
    redirect: 'error',
  });
  if (!response.ok) throw new Error(`The issuer answered with HTTP status ${response.status}`);
  const json: unknown = await response.json();
  if (typeof json !== 'object' || json === null) throw new Error('The issuer sent no JSON object');
  return json as Record<string, unknown>;
}
