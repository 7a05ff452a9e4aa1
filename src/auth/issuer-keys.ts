import { setTimeout as delay } from 'node:timers/promises';
import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type JWTVerifyGetKey,
} from 'jose';
import { issuerUnavailable } from '../errors/service-error.js';

/** The shortest time between two requests to the issuer, whatever tokens arrive and whether it responds or not. */
const COOLDOWN_MS = 1000;

/**
 * The longest wait for the keys, including the cooldown. A token waits for them twice if the cached keys are too old, and
 * the new ones lack the key that the token names.
 */
const TIMEOUT_MS = 3000;

/** A key that the issuer has withdrawn is accepted for this long, and longer only while the issuer cannot be reached. */
const MAX_AGE_MS = 5 * 60_000;

/** The most bytes that the metadata or the keys may have: a thousand keys. Anything could be sent in their place. */
const MAX_DOCUMENT_BYTES = 1024 * 1024;

/** The public keys of an issuer, found by OpenID Connect Discovery. Cached keys are used while the issuer cannot be reached. */
export class IssuerKeys {
  private readonly remote;
  // Both times are on the monotonic clock.
  private loadedAt = -Infinity;
  private nextAttemptAt = 0;
  /** Whether the last attempt failed. */
  private hasFailed = false;

  constructor(private readonly issuer: string) {
    // jose gets the URL of the metadata; `fetchKeys` finds the URL of the keys there.
    const metadataUrl = `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`;
    this.remote = createRemoteJWKSet(new URL(metadataUrl), {
      timeoutDuration: TIMEOUT_MS,
      // jose measures both with the date: set back, it would keep a withdrawn key, and not look for a new one.
      cacheMaxAge: Infinity,
      cooldownDuration: Infinity,
      [customFetch]: (url, options) => this.fetchKeys(url, options),
    });
  }

  /**
   * The key of a token, in the form that `jwtVerify` takes.
   *
   * @throws ServiceError issuerUnavailable when the keys cannot be fetched; any other error, mostly one of jose, when the
   *   issuer has no such key, or one that cannot be used
   */
  readonly find: JWTVerifyGetKey = async (header, token) => {
    let failure: unknown;
    if (performance.now() - this.loadedAt >= MAX_AGE_MS) failure = await this.reload();
    // Without any keys, jose would try to fetch them, and its error would not tell whether it is about the token.
    if (this.loadedAt === -Infinity) throw issuerUnavailable(failure);
    try {
      return await this.remote(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
    }
    failure ??= await this.reload();
    if (failure !== undefined) throw issuerUnavailable(failure);
    return this.remote(header, token);
  };

  /** @returns the reason why the keys could not be fetched; undefined if they were */
  private async reload(): Promise<unknown> {
    try {
      await this.remote.reload();
    } catch (error) {
      return error;
    }
    this.loadedAt = performance.now();
    // An empty set is a fault of the issuer, and no verdict about a token.
    return this.remote.jwks()!.keys.length > 0 ? undefined : new Error('The issuer has no keys');
  }

  private async fetchKeys(...[url, options]: Parameters<FetchImplementation>): Promise<Response> {
    const rest = this.nextAttemptAt - performance.now();
    if (rest > 0) {
      // The next attempt would probably fail, too: a request must not wait for it.
      if (this.hasFailed) throw new Error('The issuer failed a moment ago');
      await delay(rest);
    }
    this.nextAttemptAt = performance.now() + COOLDOWN_MS;
    // Set before the requests, because `fetch` may throw.
    this.hasFailed = true;
    const response = await fetchDocument(await this.keysUrl(url, options), options);
    this.hasFailed = !response.ok;
    return response;
  }

  /** OpenID Connect Discovery 1.0, section 4. */
  private async keysUrl(...[url, options]: Parameters<FetchImplementation>): Promise<string> {
    const response = await fetchDocument(url, options);
    if (!response.ok) throw new Error(`The issuer responded with HTTP status ${response.status}`);
    const metadata = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown } | null;
    // Section 4.3: otherwise one issuer could publish keys for another.
    if (metadata?.issuer !== this.issuer) {
      throw new Error('The metadata of the issuer names another issuer');
    }
    return String(metadata.jwks_uri);
  }
}

/** Like `fetch`, but reads the body, and fails as soon as it is too large. */
async function fetchDocument(
  ...[url, options]: Parameters<FetchImplementation>
): Promise<Response> {
  const response = await fetch(url, options);
  const body = (response.body ?? []) as AsyncIterable<Uint8Array>;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > MAX_DOCUMENT_BYTES) {
      throw new Error(`The issuer sent more than ${MAX_DOCUMENT_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return new Response(Buffer.concat(chunks), response);
}
