import { createRemoteJWKSet, errors, jwtVerify, type JWTVerifyGetKey } from 'jose';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import type { Caller } from './caller.js';

/** Signatures with a key pair only: with a shared secret, or none, everybody could sign. */
const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
  'Ed25519',
];

const CLOCK_TOLERANCE_SECONDS = 5;

const FETCH_TIMEOUT_MS = 2000;

/** A key that is not known is looked for at the issuer, but not more often than this. */
const KEY_FETCH_COOLDOWN_MS = 5000;

/** A key that the issuer has withdrawn is believed for this long at most. */
const KEY_MAX_AGE_MS = 5 * 60_000;

/** Three parts in base64url. Everything else is refused without a look at the issuer. */
const JWT_PATTERN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

export interface OidcConfig {
  readonly issuer: string;
  readonly audience: string;
}

/** Verifies access tokens of an identity provider: JWTs as RFC 9068 describes them. */
export class JwtVerifier {
  private keys: Promise<JWTVerifyGetKey> | undefined;

  constructor(private readonly config: OidcConfig) {}

  /**
   * @returns who the token stands for, or undefined if it is not valid
   * @throws ServiceError issuerUnavailable when the issuer's keys are needed and cannot be had
   */
  async verify(token: string): Promise<Caller | undefined> {
    if (!JWT_PATTERN.test(token)) return undefined;
    try {
      const { payload } = await jwtVerify(token, await this.getKeys(), {
        issuer: this.config.issuer,
        audience: this.config.audience,
        algorithms: ALGORITHMS,
        // Tells an access token from an ID token of the same issuer (RFC 9068 section 2.1).
        typ: 'at+jwt',
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        // RFC 9068 section 2.2.
        requiredClaims: ['iss', 'exp', 'aud', 'sub', 'client_id', 'iat', 'jti'],
      });
      return {
        name: payload.sub!,
        tokenId: undefined,
        expiresAt: (payload.exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
      };
    } catch (error) {
      if (isIssuerFailure(error)) throw issuerUnavailable(error);
      return undefined;
    }
  }

  /** Discovered with the first token, so that the service starts while the issuer is down. */
  private getKeys(): Promise<JWTVerifyGetKey> {
    this.keys ??= discoverKeys(this.config.issuer).catch((error: unknown) => {
      this.keys = undefined;
      throw error;
    });
    return this.keys;
  }
}

/** The issuer could not be asked, or answered what no issuer answers. */
class IssuerError extends Error {
  override readonly name = 'IssuerError';
}

/** OpenID Connect Discovery 1.0, section 4. */
async function discoverKeys(issuer: string): Promise<JWTVerifyGetKey> {
  try {
    const response = await fetch(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(FETCH_TIMEOUT_MS),
      redirect: 'error',
    });
    if (!response.ok) throw new Error(`HTTP status ${response.status}`);
    const metadata = (await response.json()) as { issuer?: unknown; jwks_uri?: unknown };
    // Section 4.3: otherwise one issuer could speak for another.
    if (metadata.issuer !== issuer) throw new Error('it names another issuer');
    return createRemoteJWKSet(new URL(String(metadata.jwks_uri)), {
      timeoutDuration: FETCH_TIMEOUT_MS,
      cooldownDuration: KEY_FETCH_COOLDOWN_MS,
      cacheMaxAge: KEY_MAX_AGE_MS,
    });
  } catch (error) {
    throw new IssuerError('The metadata of the issuer cannot be read', { cause: error });
  }
}

/**
 * Errors of jose that say something about the token make it invalid; everything else (no connection, a
 * time-out, an answer that is no key set) says something about the issuer.
 */
function isIssuerFailure(error: unknown): boolean {
  return (
    !(error instanceof errors.JOSEError) ||
    error instanceof errors.JWKSTimeout ||
    error instanceof errors.JWKSInvalid ||
    error.code === errors.JOSEError.code
  );
}

function issuerUnavailable(cause: unknown): ServiceError {
  return new ServiceError(
    ErrorCode.issuerUnavailable,
    'The token cannot be judged now, because the identity provider does not answer. Send the request again in a moment.',
    { cause },
  );
}
