import { errors, jwtVerify, type JWTPayload } from 'jose';
import { ErrorCode } from '../errors/error-codes.js';
import { ServiceError } from '../errors/service-error.js';
import type { Caller } from './caller.js';
import { IssuerKeys, IssuerUnavailableError } from './issuer-keys.js';

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

/** Three parts in base64url. Everything else is refused without a look at the issuer. */
const JWT_PATTERN = /^[\w-]+\.[\w-]+\.[\w-]+$/;

export interface OidcConfig {
  readonly issuer: string;
  readonly audience: string;
}

/** Verifies access tokens of an identity provider: JWTs as RFC 9068 describes them. */
export class JwtVerifier {
  private readonly keys: IssuerKeys;

  constructor(private readonly config: OidcConfig) {
    this.keys = new IssuerKeys(config.issuer);
  }

  /** Whether this could be a token of an issuer; says nothing about whether it is one. */
  static isJwt(token: string): boolean {
    return JWT_PATTERN.test(token);
  }

  /**
   * @returns whom the token stands for, or undefined if it is not valid
   * @throws ServiceError issuerUnavailable when the issuer's keys are needed and cannot be had
   */
  async verify(token: string): Promise<Caller | undefined> {
    try {
      return callerOf(await this.verifySignature(token));
    } catch (error) {
      if (error instanceof errors.JOSEError) return undefined;
      if (!(error instanceof IssuerUnavailableError)) throw error;
      throw new ServiceError(
        ErrorCode.issuerUnavailable,
        'The token cannot be judged now, because the identity provider does not answer. Send the request again in a moment.',
        { cause: error },
      );
    }
  }

  private async verifySignature(token: string): Promise<JWTPayload> {
    const { payload } = await jwtVerify(token, this.keys.find, {
      issuer: this.config.issuer,
      audience: this.config.audience,
      algorithms: ALGORITHMS,
      // Tells an access token from an ID token of the same issuer (RFC 9068 section 2.1).
      typ: 'at+jwt',
      clockTolerance: CLOCK_TOLERANCE_SECONDS,
      requiredClaims: ['exp'],
    });
    return payload;
  }
}

/** RFC 9068 section 2.2: what else a token must say, and in which form. */
function callerOf({ sub, exp, iat, jti, client_id: clientId }: JWTPayload): Caller | undefined {
  const now = Date.now() / 1000;
  const isComplete = [sub, jti, clientId].every((text) => typeof text === 'string' && text !== '');
  const isFromThePast = typeof iat === 'number' && iat <= now + CLOCK_TOLERANCE_SECONDS;
  if (!isComplete || !isFromThePast) return undefined;
  return {
    name: sub!,
    tokenId: undefined,
    expiresAt: (exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
  };
}
