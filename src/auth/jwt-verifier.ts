import { decodeJwt, decodeProtectedHeader, jwtVerify, type JWTPayload } from 'jose';
import type { Config } from '../config/config.js';
import { ServiceError } from '../errors/service-error.js';
import type { Caller } from './caller.js';
import { IssuerKeys } from './issuer-keys.js';

/** Only signatures with a key pair. With `none`, or a public key used as a shared secret, anybody could sign. */
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

/** Distinguishes an access token from an ID token of the same issuer (RFC 9068 section 2.1). */
const TYPE = 'at+jwt';

/** Verifies access tokens of an identity provider: JWTs as RFC 9068 describes them. */
export class JwtVerifier {
  private readonly keys: IssuerKeys;

  constructor(private readonly config: NonNullable<Config['auth']['oidc']>) {
    this.keys = new IssuerKeys(config.issuer);
  }

  /**
   * Whether header and claims of the token are those of a JWT for this service. jose checks type, issuer and audience only when it
   * has the key: checked first, a token with an unknown key that is not meant for this service costs no request to the issuer.
   */
  isMeantForThisService(token: string): boolean {
    try {
      const { alg, typ } = decodeProtectedHeader(token);
      const { iss, aud } = decodeJwt(token);
      const audiences = [aud].flat();
      return (
        ALGORITHMS.includes(String(alg)) &&
        typ?.toLowerCase().replace(/^application\//, '') === TYPE &&
        iss === this.config.issuer &&
        audiences.includes(this.config.audience)
      );
    } catch {
      return false;
    }
  }

  /**
   * @returns the caller with this token, or undefined if it is not valid
   * @throws ServiceError issuerUnavailable when the issuer's keys are needed and cannot be fetched
   */
  readonly verify = async (token: string): Promise<Caller | undefined> => {
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, this.keys.find, {
        issuer: this.config.issuer,
        audience: this.config.audience,
        algorithms: ALGORITHMS,
        typ: TYPE,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'iat'],
      }));
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      // jose refuses the token, or the key that it names, such as an RSA key of 1024 bits. About a key, it throws errors
      // of many kinds, also a plain TypeError.
      return undefined;
    }
    return callerOf(payload);
  };
}

/** Checks the claims that RFC 9068 section 2.2 requires, beyond those that jose has checked. */
function callerOf({ sub, exp, iat, jti, client_id: clientId }: JWTPayload): Caller | undefined {
  const now = Date.now() / 1000;
  const isComplete = [sub, jti, clientId].every((text) => typeof text === 'string' && text !== '');
  const isIssued = iat! <= now + CLOCK_TOLERANCE_SECONDS;
  if (!isComplete || !isIssued) return undefined;
  return {
    name: sub!,
    tokenId: undefined,
    expiresAt: (exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
  };
}
