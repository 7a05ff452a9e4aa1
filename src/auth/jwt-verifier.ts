import {
  decodeJwt,
  decodeProtectedHeader,
  errors,
  jwtVerify,
  type JWTPayload,
  type ProtectedHeaderParameters,
} from 'jose';
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

  /** @throws ServiceError issuerUnavailable when they cannot be fetched */
  async loadKeys(): Promise<void> {
    await this.keys.issuer();
  }

  /**
   * Why header and claims of the token are not those of a JWT for this service. jose checks type, issuer and audience only when it
   * has the key: checked first, a token with an unknown key that is not meant for this service costs no request to the issuer.
   *
   * @returns the reason, for the log; undefined if they are
   */
  problemOf(token: string): string | undefined {
    const { audience } = this.config;
    let header: ProtectedHeaderParameters;
    let claims: JWTPayload;
    try {
      header = decodeProtectedHeader(token);
      claims = decodeJwt(token);
    } catch {
      return 'it is neither a JWT nor a token of this service, or not complete';
    }
    const { alg, typ } = header;
    const { iss, aud } = claims;
    if (!ALGORITHMS.some((it) => it === alg)) return '"alg" is not an algorithm that is accepted';
    if (!isAccessTokenType(typ)) return `"typ" is not ${TYPE}`;
    if (!this.keys.names.some((name) => name === iss)) return `"iss" is not ${this.keys.names[0]}`;
    if (![aud].flat().includes(audience)) return `"aud" does not contain ${audience}`;
    return undefined;
  }

  /**
   * @returns the caller with this token, or the reason why it is not valid, for the log
   * @throws ServiceError issuerUnavailable when the issuer's keys are needed and cannot be fetched
   */
  readonly verify = async (token: string): Promise<Caller | string> => {
    let payload: JWTPayload;
    try {
      ({ payload } = await jwtVerify(token, this.keys.find, {
        issuer: await this.keys.issuer(),
        audience: this.config.audience,
        algorithms: ALGORITHMS,
        typ: TYPE,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'iat'],
      }));
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      // The message quotes the header.
      if (error instanceof errors.JOSENotSupported) return 'its header or its key is not supported';
      // jose refuses the token, or the key that it names, such as an RSA key of 1024 bits. About a key, it throws errors
      // of many kinds, also a plain TypeError.
      return (error as Error).message;
    }
    return callerOf(payload);
  };
}

/** Anybody may send a header whose type is no text. */
const isAccessTokenType = (typ: unknown): boolean =>
  typeof typ === 'string' && typ.toLowerCase().replace(/^application\//, '') === TYPE;

/**
 * Checks the claims that RFC 9068 section 2.2 requires, beyond those that jose has checked.
 *
 * @returns the caller, or the reason why the token is not valid
 */
function callerOf(payload: JWTPayload): Caller | string {
  const now = Date.now() / 1000;
  for (const claim of ['sub', 'jti', 'client_id']) {
    const text = payload[claim];
    if (typeof text !== 'string' || text === '') return `"${claim}" is not a text, or empty`;
  }
  const isIssued = payload.iat! <= now + CLOCK_TOLERANCE_SECONDS;
  if (!isIssued) return '"iat" is in the future';
  return {
    name: payload.sub!,
    tokenId: undefined,
    expiresAt: (payload.exp! + CLOCK_TOLERANCE_SECONDS) * 1000,
  };
}
