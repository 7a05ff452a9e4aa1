import { createHmac, createPublicKey } from 'node:crypto';
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from 'jose';
import {
  afterAll,
  afterEach,
  beforeAll,
  beforeEach,
  describe,
  expect,
  it,
  jest,
} from '@jest/globals';
import { AUDIENCE, startIssuer, type Issuer } from '../../test/setup/http/issuer.js';
import { holdTime } from '../../test/setup/time/held-timers.js';
import { JwtVerifier } from './jwt-verifier.js';

/** Seconds since 1970, as in a token. */
const NOW = 1_800_000_000;

const CALLER = { name: 'gardener', tokenId: undefined, expiresAt: (NOW + 305) * 1000 };

/** The reason. */
const REFUSED = expect.any(String);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a token of an identity provider', () => {
  let issuer: Issuer;
  let verifier: JwtVerifier;

  beforeAll(async () => {
    issuer = await startIssuer('ES256');
  });
  beforeEach(() => {
    verifier = new JwtVerifier({ issuer: issuer.url, audience: AUDIENCE });
    holdTime(NOW * 1000);
  });
  afterEach(() => void jest.useRealTimers());
  afterAll(() => issuer.close());

  /** Checks a token as the service does. */
  const check = async (token: string) =>
    verifier.problemOf(token) ?? (await verifier.verify(token));

  it('names its caller, and is valid until five seconds after `exp`', async () => {
    expect(await check(await issuer.sign())).toEqual(CALLER);
  });

  it.each<[string, Record<string, unknown>]>([
    ['several audiences, including the configured one', { aud: ['other', AUDIENCE] }],
    ['an expiry less than five seconds ago', { exp: NOW - 4 }],
    ['a beginning in five seconds', { nbf: NOW + 5 }],
    ['a time of issue in five seconds', { iat: NOW + 5 }],
  ])('is accepted with %s', async (_kind, changes) => {
    expect(await check(await issuer.sign(changes))).toMatchObject({ name: 'gardener' });
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['another audience', { aud: 'other' }, `"aud" does not contain ${AUDIENCE}`],
    ['no audience', { aud: undefined }, `"aud" does not contain ${AUDIENCE}`],
    ['another issuer', { iss: 'https://example.org' }, '"iss" is not http'],
    ['an expiry five seconds ago', { exp: NOW - 5 }, '"exp" claim timestamp check failed'],
    ['no expiry', { exp: undefined }, 'missing required "exp" claim'],
    ['a beginning in six seconds', { nbf: NOW + 6 }, '"nbf" claim timestamp check failed'],
    ['a time of issue in six seconds', { iat: NOW + 6 }, '"iat" is in the future'],
    ['no time of issue', { iat: undefined }, 'missing required "iat" claim'],
    ['an empty subject', { sub: '' }, '"sub" is not a text, or empty'],
    ['a subject that is no text', { sub: { a: 1 } }, '"sub" is not a text, or empty'],
    ['no client', { client_id: undefined }, '"client_id" is not a text, or empty'],
    ['no id', { jti: undefined }, '"jti" is not a text, or empty'],
  ])('is not accepted with %s, and the reason says so', async (_kind, changes, reason) => {
    expect(await check(await issuer.sign(changes))).toContain(reason);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['the type of an ID token', { typ: 'JWT' }, '"typ" is not at+jwt'],
    ['no type', { typ: undefined }, '"typ" is not at+jwt'],
    ['an unknown key', { kid: 'other' }, 'no applicable key found in the JSON Web Key Set'],
    ['an unknown extension', { crit: ['x'], x: 1 }, 'its header or its key is not supported'],
  ])('is not accepted with a header of %s', async (_kind, header, reason) => {
    expect(await check(await issuer.sign({}, header))).toBe(reason);
  });

  it.each<[string, unknown, string]>([
    ['a type that is no text', { alg: 'ES256', typ: { toString: 1 } }, '"typ" is not at+jwt'],
    ['an algorithm that is no text', { alg: { toString: 1 } }, '"alg" is not an algorithm'],
    ['no algorithm', { typ: 'at+jwt' }, '"alg" is not an algorithm'],
    ['no object', null, 'it is neither a JWT nor a token of this service'],
  ])('is not accepted with a header of %s', async (_kind, header, reason) => {
    expect(await check(`${encode(header)}.e30.e30`)).toContain(reason);
  });

  it('may write its type in full', async () => {
    const token = await issuer.sign({}, { typ: 'Application/AT+JWT' });
    expect(await check(token)).toEqual(CALLER);
  });

  it('may be signed with RSA, ECDSA or EdDSA', async () => {
    const [, claims] = (await issuer.sign()).split('.');
    for (const alg of [
      ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
      ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
    ]) {
      expect(verifier.problemOf(`${encode({ alg, typ: 'at+jwt' })}.${claims}.`)).toBeUndefined();
    }
  });

  it.each(['none', 'None', ''])(
    'is not accepted with the algorithm %j, with or without a signature',
    async (alg) => {
      const [, claims, signature] = (await issuer.sign()).split('.');
      const head = encode({ alg, typ: 'at+jwt', kid: issuer.publicJwk.kid });
      expect(await check(`${head}.${claims}.`)).toEqual(REFUSED);
      expect(await check(`${head}.${claims}.${signature}`)).toEqual(REFUSED);
    },
  );

  it('is not accepted with the public key as a shared secret, in any form', async () => {
    const [, claims] = (await issuer.sign()).split('.');
    const { publicJwk } = issuer;
    const signed = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: publicJwk.kid })}.${claims}`;
    const key = createPublicKey({ key: publicJwk, format: 'jwk' });
    const pem = key.export({ type: 'spki', format: 'pem' });
    for (const secret of [pem, JSON.stringify(publicJwk), publicJwk.x!]) {
      const signature = createHmac('sha256', secret).update(signed).digest('base64url');
      expect(await check(`${signed}.${signature}`)).toEqual(REFUSED);
    }
  });

  it('is not accepted if it is signed with a key of the sender, even if its header contains or names a key', async () => {
    const alg = issuer.publicJwk.alg!;
    const { privateKey, publicKey } = await generateKeyPair(alg);
    const [, payload] = (await issuer.sign()).split('.');
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as JWTPayload;
    // Now the verifier has the keys of the issuer, so any further request would be for those of the sender.
    await check(await issuer.sign());
    const { requests, publicJwk } = issuer;
    const jwk = { ...(await exportJWK(publicKey)), kid: publicJwk.kid!, alg };
    issuer.documents['/keys-of-the-sender'] = { keys: [jwk] };
    for (const extra of [{}, { jwk }, { jku: `${issuer.url}/keys-of-the-sender` }]) {
      const header = { alg, typ: 'at+jwt', kid: publicJwk.kid!, ...extra };
      const token = new SignJWT(claims).setProtectedHeader(header);
      expect(await check(await token.sign(privateKey))).toEqual(REFUSED);
    }
    expect(issuer.requests).toBe(requests);
  });

  it('is not accepted if its claims or its signature were changed', async () => {
    const [head, claims, signature] = (await issuer.sign()).split('.');
    const [, others] = (await issuer.sign({ sub: 'admin' })).split('.');
    expect(await check(`${head}.${others}.${signature}`)).toEqual(REFUSED);
    for (const changed of [`.${signature!.slice(0, -8)}AAAAAAAA`, '.', '']) {
      expect(await check(`${head}.${claims}${changed}`)).toEqual(REFUSED);
    }
  });
});
