import { setTimeout as delay } from 'node:timers/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
} from 'jose';
import { isIssuerUrl } from '../config/parsers.js';
import { issuerUnavailable, overloaded } from '../errors/service-error.js';

/** The shortest time between two attempts to fetch the keys, whatever tokens arrive and whether it responds or not. */
const COOLDOWN_MS = 1000;

/** The longest wait for the keys, including the cooldown. */
const TIMEOUT_MS = 3000;

/** A key that the issuer has withdrawn is accepted for this long, and longer only while the issuer cannot be reached. */
const RELOAD_INTERVAL_MS = 5 * 60_000;

/** After a failure, so that a key that was withdrawn meanwhile does not work for another five minutes. */
const RETRY_INTERVAL_MS = 10_000;

/** The most tokens that wait for the keys of the issuer. */
const MAX_WAITING = 1000;

/** The kinds of keys that can verify a signature, RFC 7518 section 6.1 and RFC 8037. */
const KEY_TYPES = ['RSA', 'EC', 'OKP'];

interface Metadata {
  readonly issuer?: unknown;
  readonly jwks_uri?: unknown;
}

/** The public keys of an issuer, found by OpenID Connect Discovery. They stay while the issuer cannot be reached. */
export class IssuerKeys {
  private readonly keys: ReturnType<typeof createRemoteJWKSet>;
  // On the monotonic clock.
  private nextAttemptAt = 0;
  private lastAttemptFailed = false;
  private waiting = 0;

  constructor(private readonly issuer: string) {
    // jose gets the URL of the metadata; `fetchKeySet` finds the URL of the keys there.
    const metadataUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    this.keys = createRemoteJWKSet(new URL(metadataUrl), {
      timeoutDuration: TIMEOUT_MS,
      // jose uses the date for both: when that is set back, it would keep withdrawn keys, and not look for new ones.
      cacheMaxAge: Infinity,
      cooldownDuration: Infinity,
      [customFetch]: (url, options) => this.fetchAfterCooldown(url, options),
    });
    this.reloadAfter(RELOAD_INTERVAL_MS);
  }

  /**
   * The key of a token, in the form that `jwtVerify` takes.
   *
   * @throws ServiceError issuerUnavailable when the keys cannot be fetched, overloaded when too many tokens wait for them; any other error, mostly one of jose, when the
   *   issuer has no such key, or one that cannot be used
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    if (this.keys.jwks() === undefined) await this.waitForReload();
    try {
      return await this.keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    // The issuer may have a new key.
    await this.waitForReload();
    return this.keys(header, token);
  };

  /** @throws ServiceError issuerUnavailable, or overloaded when too many tokens wait already */
  private async waitForReload(): Promise<void> {
    if (this.waiting >= MAX_WAITING) throw overloaded();
    this.waiting++;
    try {
      await this.keys.reload();
    } finally {
      this.waiting--;
    }
  }

  /** @param delay milliseconds */
  private reloadAfter(delay: number): void {
    setTimeout(() => {
      this.keys.reload().then(
        () => this.reloadAfter(RELOAD_INTERVAL_MS),
        // The requests that need the keys report the failure.
        () => this.reloadAfter(RETRY_INTERVAL_MS),
      );
    }, delay).unref();
  }

  private readonly fetchAfterCooldown: FetchImplementation = async (url, options) => {
    const wait = this.nextAttemptAt - performance.now();
    // The next attempt would probably fail, too: a request must not wait for it.
    if (wait > 0 && this.lastAttemptFailed) {
      throw issuerUnavailable(new Error('The issuer failed a moment ago'));
    }
    await delay(Math.max(0, wait));
    this.nextAttemptAt = performance.now() + COOLDOWN_MS;
    try {
      const keys = await this.fetchKeySet(url, options);
      this.lastAttemptFailed = false;
      return Response.json(keys);
    } catch (error) {
      this.lastAttemptFailed = true;
      throw issuerUnavailable(error);
    }
  };

  /** OpenID Connect Discovery 1.0, section 4. */
  private async fetchKeySet(url: string, options: RequestInit): Promise<JSONWebKeySet> {
    const metadata = (await fetchJson(url, options)) as Metadata | null;
    // Section 4.3: otherwise one issuer could publish keys for another.
    if (metadata?.issuer !== this.issuer) {
      throw new Error('The metadata of the issuer names another issuer');
    }
    const keysUrl = String(metadata.jwks_uri);
    if (!isIssuerUrl(keysUrl)) {
      throw new Error('The jwks_uri of the issuer is not an https:// address');
    }
    const keySet = (await fetchJson(keysUrl, options)) as JSONWebKeySet;
    // It throws for a set of another form. Later, that could not be told from an invalid token.
    createLocalJWKSet(keySet);
    // An empty set is a fault of the issuer, and says nothing about a token.
    if (!keySet.keys.some(canVerify)) throw new Error('The issuer has no keys for signatures');
    return keySet;
  }
}

const canVerify = ({ kty, use = 'sig' }: JWK): boolean =>
  use === 'sig' && KEY_TYPES.includes(kty ?? '');

async function fetchJson(url: string, options: RequestInit): Promise<unknown> {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`The issuer responded with HTTP status ${response.status}`);
  return response.json();
}
