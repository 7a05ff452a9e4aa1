import { setTimeout as delay } from 'node:timers/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose';

/** The issuer is asked no more often than this, whatever tokens come, and whether it responds or not. */
const COOLDOWN_MS = 1000;

/** How long the keys may take, the cooldown included. */
const TIMEOUT_MS = 3000;

/** A key that the issuer has withdrawn is believed for this long, longer only while the issuer is away. */
const MAX_AGE_MS = 5 * 60_000;

/** The keys are needed and cannot be had: nothing is said about the token. */
export class IssuerUnavailableError extends Error {
  override readonly name = 'IssuerUnavailableError';
}

/** The public keys of an issuer, found by OpenID Connect Discovery. Known keys live on while the issuer is away. */
export class IssuerKeys {
  private readonly remote;
  private triedAt = -Infinity;
  private hasFailed = false;

  constructor(private readonly issuer: string) {
    const metadata = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    this.remote = createRemoteJWKSet(new URL(metadata), {
      timeoutDuration: TIMEOUT_MS,
      cacheMaxAge: MAX_AGE_MS,
      // fetchKeys waits, where jose would call a token invalid whose key is newer than the last look.
      cooldownDuration: 0,
      [customFetch]: (url, options) => this.fetchKeys(url, options),
    });
  }

  /**
   * For `jwtVerify`.
   *
   * @throws IssuerUnavailableError; an error of jose when the token names no key of the issuer
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await this.remote(header, token);
    } catch (error) {
      const known = this.remote.jwks();
      // Against no keys at all, no token can be judged.
      if (isAboutToken(error) && known?.keys.length !== 0) throw error;
      const key = known && createLocalJWKSet(known)(header, token).catch(() => undefined);
      const found = await key;
      if (found !== undefined) return found;
      throw new IssuerUnavailableError('The keys of the issuer cannot be had', { cause: error });
    }
  };

  private async fetchKeys(...[url, options]: Parameters<FetchImplementation>): Promise<Response> {
    const rest = this.triedAt + COOLDOWN_MS - performance.now();
    if (rest > 0) {
      // No request waits for an issuer that has just failed.
      if (this.hasFailed) throw new Error('The issuer failed a moment ago');
      await delay(rest, undefined, { signal: options.signal });
    }
    this.triedAt = performance.now();
    this.hasFailed = true;
    const response = await fetch(await this.keysUrl(url, options), options);
    this.hasFailed = !response.ok;
    return response;
  }

  /** OpenID Connect Discovery 1.0, section 4. */
  private async keysUrl(...[url, options]: Parameters<FetchImplementation>): Promise<string> {
    const response = await fetch(url, options);
    if (!response.ok) throw new Error(`The issuer responded with HTTP status ${response.status}`);
    const metadata = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown } | null;
    // Section 4.3: otherwise one issuer could speak for another.
    if (metadata?.issuer !== this.issuer) {
      throw new Error('The metadata of the issuer names another one');
    }
    return String(metadata.jwks_uri);
  }
}

function isAboutToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
