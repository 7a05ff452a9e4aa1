import { setTimeout as delay } from 'node:timers/promises';
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose';
import { isIssuerUrl } from '../config/parsers.js';
import { issuerUnavailable } from '../errors/service-error.js';

/** The shortest time between two requests to the issuer, whatever tokens arrive and whether it responds or not. */
const COOLDOWN_MS = 1000;

/** The longest wait for the keys, including the cooldown. */
const TIMEOUT_MS = 3000;

/** A key that the issuer has withdrawn is accepted for this long, and longer only while the issuer cannot be reached. */
const RELOAD_INTERVAL_MS = 5 * 60_000;

/** The kinds of keys that can verify a signature, RFC 7518 section 6.1 and RFC 8037. */
const KEY_TYPES = ['RSA', 'EC', 'OKP'];

interface Metadata {
  readonly issuer?: unknown;
  readonly jwks_uri?: unknown;
}

interface KeySet {
  readonly keys?: readonly { readonly kty?: unknown; readonly use?: unknown }[];
}

/** The public keys of an issuer, found by OpenID Connect Discovery. They stay while the issuer cannot be reached. */
export class IssuerKeys {
  private readonly keys: ReturnType<typeof createRemoteJWKSet>;
  // On the monotonic clock.
  private nextAttemptAt = 0;
  private lastAttemptFailed = false;

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
    setInterval(() => {
      // A failure is reported by the requests that need the keys.
      this.keys.reload().catch(() => undefined);
    }, RELOAD_INTERVAL_MS).unref();
  }

  /**
   * The key of a token, in the form that `jwtVerify` takes.
   *
   * @throws ServiceError issuerUnavailable when the keys cannot be fetched; any other error, mostly one of jose, when the
   *   issuer has no such key, or one that cannot be used
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await this.keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    // The issuer may have a new key.
    await this.keys.reload();
    return this.keys(header, token);
  };

  private readonly fetchAfterCooldown: FetchImplementation = async (url, options) => {
    const wait = this.nextAttemptAt - performance.now();
    // The next attempt would probably fail, too: a request must not wait for it.
    if (wait > 0 && this.lastAttemptFailed)
      throw issuerUnavailable(new Error('The issuer failed a moment ago'));
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
  private async fetchKeySet(url: string, options: RequestInit): Promise<KeySet> {
    const metadata = await fetchJson<Metadata>(url, options);
    // Section 4.3: otherwise one issuer could publish keys for another.
    if (metadata?.issuer !== this.issuer) {
      throw new Error('The metadata of the issuer names another issuer');
    }
    const keysUrl = String(metadata.jwks_uri);
    if (!isIssuerUrl(keysUrl))
      throw new Error('The jwks_uri of the issuer is not an https:// address');
    const keySet = await fetchJson<KeySet>(keysUrl, options);
    // An empty set is a fault of the issuer, and says nothing about a token.
    if (
      !keySet?.keys?.some(
        ({ kty, use = 'sig' }) => KEY_TYPES.includes(String(kty)) && use === 'sig',
      )
    ) {
      throw new Error('The issuer has no keys for signatures');
    }
    return keySet;
  }
}

async function fetchJson<Json>(url: string, options: RequestInit): Promise<Json | null> {
  const response = await fetch(url, options);
  if (!response.ok) throw new Error(`The issuer responded with HTTP status ${response.status}`);
  return (await response.json()) as Json | null;
}
