import { setTimeout as delay } from 'node:timers/promises';
import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  flattenedVerify,
  type FetchImplementation,
  type JSONWebKeySet,
  type JWK,
  type JWTVerifyGetKey,
} from 'jose';
import { isIssuerUrl } from '../config/parsers.js';
import { issuerMisconfigured, issuerUnavailable, overloaded } from '../errors/errors.js';
import { ServiceError } from '../errors/service-error.js';

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
  private lastFailure: ServiceError | undefined;
  private waiting = 0;
  /** The two names that the metadata may give the issuer: without a slash at its end, and with one. */
  readonly names: readonly [string, string];
  /** The one of them that the metadata give, when they have been fetched. */
  private name: string | undefined;

  /** @param setting the issuer, or the URL of its metadata, which many identity providers show in its place */
  constructor(private readonly setting: string) {
    const issuer = setting.replace(/(\/\.well-known\/openid-configuration)?\/?$/, '');
    this.names = [issuer, `${issuer}/`];
    // jose gets the URL of the metadata; `fetchKeySet` finds the URL of the keys there.
    this.keys = createRemoteJWKSet(new URL(`${issuer}/.well-known/openid-configuration`), {
      timeoutDuration: TIMEOUT_MS,
      // jose uses the date for both: when that is set back, it would keep withdrawn keys, and not look for new ones.
      cacheMaxAge: Infinity,
      cooldownDuration: Infinity,
      [customFetch]: (url, options) => this.fetchAfterCooldown(url, options),
    });
    this.reloadAfter(RELOAD_INTERVAL_MS);
  }

  /**
   * The issuer as its metadata name it. The first call fetches them with the keys.
   *
   * @throws ServiceError issuerUnavailable, or overloaded when too many tokens wait already
   */
  async issuer(): Promise<string> {
    if (this.name === undefined) await this.waitForReload();
    return this.name!;
  }

  /**
   * The key of a token, in the form that `jwtVerify` takes. `issuer` has fetched the keys before.
   *
   * @throws ServiceError issuerUnavailable when the keys cannot be fetched, overloaded when too many tokens wait for them; any other error, mostly one of jose, when the
   *   issuer has no such key, or one that cannot be used
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    try {
      return await this.findKnown(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    // The issuer may have a new key.
    await this.waitForReload();
    return this.findKnown(header, token);
  };

  /** Without a `kid`, which is optional, several keys may fit (RFC 7515 appendix D): the key of the token is the one that verifies it. */
  private readonly findKnown: JWTVerifyGetKey = async (header, token) => {
    try {
      return await this.keys(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSMultipleMatchingKeys)) throw error;
      for await (const key of error) {
        const verified = await flattenedVerify(token, key).catch(() => undefined);
        if (verified !== undefined) return key;
      }
      throw new errors.JWKSNoMatchingKey();
    }
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
    if (wait > 0 && this.lastFailure !== undefined) throw this.lastFailure;
    await delay(Math.max(0, wait));
    this.nextAttemptAt = performance.now() + COOLDOWN_MS;
    try {
      const keys = await this.fetchKeySet(url, options);
      this.lastFailure = undefined;
      return Response.json(keys);
    } catch (error) {
      this.lastFailure = error instanceof ServiceError ? error : issuerUnavailable(error);
      throw this.lastFailure;
    }
  };

  /** OpenID Connect Discovery 1.0, section 4. */
  private async fetchKeySet(url: string, options: RequestInit): Promise<JSONWebKeySet> {
    const metadata = (await fetchJson(url, options)) as Metadata | null;
    const name = this.names.find((it) => it === metadata?.issuer);
    // Section 4.3: otherwise one issuer could publish keys for another.
    if (name === undefined) {
      throw issuerMisconfigured(
        `OIDC_ISSUER is ${JSON.stringify(this.setting)}, but the issuer in ${url} is ${JSON.stringify(metadata?.issuer)}: set OIDC_ISSUER to that, or correct the identity provider`,
      );
    }
    const keysUrl = String(metadata?.jwks_uri);
    if (!isIssuerUrl(keysUrl)) {
      throw issuerMisconfigured(`The jwks_uri in ${url} is not an https:// address`);
    }
    const keySet = (await fetchJson(keysUrl, options)) as JSONWebKeySet;
    // It throws for a set of another form. Later, that could not be told from an invalid token.
    createLocalJWKSet(keySet);
    // An empty set is a fault of the issuer, and says nothing about a token.
    if (!keySet.keys.some(canVerify)) throw new Error('The issuer has no keys for signatures');
    this.name = name;
    return keySet;
  }
}

const canVerify = ({ kty, use = 'sig' }: JWK): boolean =>
  use === 'sig' && KEY_TYPES.includes(kty ?? '');

async function fetchJson(url: string, options: RequestInit): Promise<unknown> {
  const response = await fetch(url, options);
  if (response.ok) return response.json();
  const { status } = response;
  const problem = `${url} responded with HTTP status ${status}`;
  if (status >= 500 || status === 429) throw new Error(problem);
  // It works, and has nothing there for the service.
  throw issuerMisconfigured(`${problem}: check OIDC_ISSUER`);
}
