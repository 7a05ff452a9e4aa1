import { createHmac, createPublicKey, generateKeyPairSync, sign } from 'node:crypto';
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
import { issuerUnavailable } from '../errors/errors.js';
import { JwtVerifier } from './jwt-verifier.js';

/** Seconds since 1970, as in a token. */
const NOW = 1_800_000_000;

const ACCEPTED = { name: 'gardener' };

/** The reason. */
const REFUSED = expect.any(String);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

const RSA = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' });
const RSA_1024 = generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({
  format: 'jwk',
});
const EC = generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey.export({ format: 'jwk' });
const X25519 = generateKeyPairSync('x25519').publicKey.export({ format: 'jwk' });

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

  /** Checks a token while the issuer publishes only this key. */
  async function verifyWithKey(key: object, token: string) {
    const keys = issuer.documents['/keys'];
    issuer.documents['/keys'] = { keys: [key] };
    try {
      return await verifier.verify(token);
    } finally {
      issuer.documents['/keys'] = keys;
    }
  }

  it('stands for the caller that it names, until it expires by a clock that is five seconds slow', async () => {
    expect(await verifier.verify(await issuer.sign({ exp: NOW + 300 }))).toEqual({
      name: 'gardener',
      tokenId: undefined,
      expiresAt: (NOW + 305) * 1000,
    });
  });

  it.each<[string, Record<string, unknown>]>([
    ['several audiences, including the configured one', { aud: ['other', AUDIENCE] }],
    ['an expiry less than five seconds ago', { exp: NOW - 4 }],
    ['a beginning in five seconds', { nbf: NOW + 5 }],
    ['a time of issue in five seconds', { iat: NOW + 5 }],
  ])('is accepted with %s', async (_kind, changes) => {
    expect(await verifier.verify(await issuer.sign(changes))).toMatchObject(ACCEPTED);
  });

  it.each<[string, Record<string, unknown>, string]>([
    ['another audience', { aud: 'other' }, 'unexpected "aud" claim value'],
    ['no audience', { aud: undefined }, 'missing required "aud" claim'],
    ['another issuer', { iss: 'https://example.org' }, 'unexpected "iss" claim value'],
    ['no issuer', { iss: undefined }, 'missing required "iss" claim'],
    ['an expiry five seconds ago', { exp: NOW - 5 }, '"exp" claim timestamp check failed'],
    ['no expiry', { exp: undefined }, 'missing required "exp" claim'],
    ['a beginning in six seconds', { nbf: NOW + 6 }, '"nbf" claim timestamp check failed'],
    ['a time of issue in six seconds', { iat: NOW + 6 }, '"iat" is in the future'],
    ['a time of issue that is text', { iat: String(NOW) }, '"iat" claim must be a number'],
    ['no time of issue', { iat: undefined }, 'missing required "iat" claim'],
    ['an empty subject', { sub: '' }, '"sub" is not a text, or empty'],
    ['a subject that is no text', { sub: { a: 1 } }, '"sub" is not a text, or empty'],
    ['no subject', { sub: undefined }, '"sub" is not a text, or empty'],
    ['a client that is no text', { client_id: false }, '"client_id" is not a text, or empty'],
    ['no client', { client_id: undefined }, '"client_id" is not a text, or empty'],
    ['an empty id', { jti: '' }, '"jti" is not a text, or empty'],
    ['no id', { jti: undefined }, '"jti" is not a text, or empty'],
  ])('is not accepted with %s, and the reason says so', async (_kind, changes, reason) => {
    expect(await verifier.verify(await issuer.sign(changes))).toBe(reason);
  });

  it('must name the issuer exactly, also if its name ends with a slash', async () => {
    const path = '/.well-known/openid-configuration';
    const metadata = issuer.documents[path];
    const name = `${issuer.url}/`;
    issuer.documents[path] = { issuer: name, jwks_uri: `${name}keys` };
    verifier = new JwtVerifier({ issuer: name, audience: AUDIENCE });
    try {
      expect(await verifier.verify(await issuer.sign({ iss: name }))).toMatchObject(ACCEPTED);
      expect(await verifier.verify(await issuer.sign({ iss: issuer.url }))).toEqual(REFUSED);
    } finally {
      issuer.documents[path] = metadata;
    }
  });

  it('is not accepted if it is an ID token, or of no type', async () => {
    for (const typ of ['JWT', undefined]) {
      expect(await verifier.verify(await issuer.sign({}, { typ }))).toEqual(REFUSED);
    }
  });

  it.each(['none', 'None', 'NONE', ''])(
    'is not accepted with the algorithm %j, with or without a signature',
    async (alg) => {
      const [, payload, signature] = (await issuer.sign()).split('.');
      const { kid } = issuer.publicJwk;
      for (const head of [
        { alg, typ: 'at+jwt' },
        { alg, typ: 'at+jwt', kid },
      ]) {
        expect(await verifier.verify(`${encode(head)}.${payload}.`)).toEqual(REFUSED);
        expect(await verifier.verify(`${encode(head)}.${payload}.${signature}`)).toEqual(REFUSED);
      }
    },
  );

  it.each(['ES256', 'RS256'])(
    'is not accepted with the public key as a shared secret, in any form, for %s',
    async (algorithm) => {
      await issuer.rotateKey(algorithm);
      const [, payload] = (await issuer.sign()).split('.');
      const { publicJwk } = issuer;
      const shared = `${encode({ alg: 'HS256', typ: 'at+jwt', kid: publicJwk.kid })}.${payload}`;
      const pem = createPublicKey({ key: publicJwk, format: 'jwk' }).export({
        type: 'spki',
        format: 'pem',
      });
      for (const secret of [pem, JSON.stringify(publicJwk), (publicJwk.n ?? publicJwk.x)!]) {
        const signature = createHmac('sha256', secret).update(shared).digest('base64url');
        expect(await verifier.verify(`${shared}.${signature}`)).toEqual(REFUSED);
      }
    },
  );

  it.each<[string, Record<string, unknown>, string]>([
    ['an unknown key', { kid: 'other' }, 'no applicable key found in the JSON Web Key Set'],
    [
      'an extension that must be understood',
      { crit: ['x'], x: 1 },
      'its header or its key is not supported',
    ],
  ])(
    'is not accepted with the header of %s, although its signature is valid',
    async (_kind, header, reason) => {
      expect(await verifier.verify(await issuer.sign({}, header))).toBe(reason);
    },
  );

  it('is not accepted if it is signed with a key of the sender, even if its header contains or names a key', async () => {
    const alg = issuer.publicJwk.alg!;
    const { privateKey, publicKey } = await generateKeyPair(alg);
    const [, payload] = (await issuer.sign()).split('.');
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as JWTPayload;
    // Now the verifier has the keys of the issuer, so any further request would be for those of the sender.
    await verifier.verify(await issuer.sign());
    const { requests, publicJwk } = issuer;
    const jwk = { ...(await exportJWK(publicKey)), kid: publicJwk.kid!, alg };
    issuer.documents['/keys-of-the-sender'] = { keys: [jwk] };
    for (const extra of [
      {},
      { jwk },
      { jwk: publicJwk },
      { jku: `${issuer.url}/keys-of-the-sender` },
      { jku: 'http://127.0.0.1:1/keys' },
    ]) {
      const token = new SignJWT(claims).setProtectedHeader({
        alg,
        typ: 'at+jwt',
        kid: publicJwk.kid!,
        ...extra,
      });
      expect(await verifier.verify(await token.sign(privateKey))).toEqual(REFUSED);
    }
    expect(issuer.requests).toBe(requests);
  });

  it('is not accepted if its claims or its signature were changed', async () => {
    const [head, claims, signature] = (await issuer.sign()).split('.');
    const [, others] = (await issuer.sign({ sub: 'admin' })).split('.');
    expect(await verifier.verify(`${head}.${others}.${signature}`)).toEqual(REFUSED);
    for (const changed of [`.${signature!.slice(0, -8)}AAAAAAAA`, '.', '']) {
      expect(await verifier.verify(`${head}.${claims}${changed}`)).toEqual(REFUSED);
    }
  });

  it.each<[string, string, object]>([
    ['an RSA key of 1024 bits', 'PS512', RSA_1024],
    ['an RSA key without a modulus', 'RS256', { ...RSA, n: undefined }],
    ['an RSA key whose modulus is empty', 'RS256', { ...RSA, n: '' }],
    ['an RSA key whose modulus is a number', 'PS256', { ...RSA, n: 5 }],
    ['an RSA key whose modulus is an object', 'RS256', { ...RSA, n: {} }],
    ['an RSA key without an exponent', 'RS256', { ...RSA, e: undefined }],
    ['an RSA key with the exponent 1', 'RS256', { ...RSA, e: 'AQ' }],
    ['an RSA key of several primes', 'RS256', { ...RSA, oth: [{}] }],
    ['a private key', 'RS256', { ...RSA, d: 'AQAB' }],
    ['a key whose kind is not the one of its fields', 'RS256', { ...EC, kty: 'RSA' }],
    ['a point that is not on its curve', 'ES256', { ...EC, y: EC.x }],
    ['a point of the wrong length', 'ES256', { ...EC, x: 'AAAA' }],
    ['a point without a coordinate', 'ES256', { ...EC, y: undefined }],
    ['a key for an exchange of keys', 'EdDSA', { ...X25519, crv: 'Ed25519' }],
    ['a point that is too short', 'Ed25519', { ...X25519, crv: 'Ed25519', x: 'AA' }],
  ])('is not accepted if its key is %s, for %s', async (_kind, alg, key) => {
    const [, payload] = (await issuer.sign()).split('.');
    const head = encode({ alg, typ: 'at+jwt', kid: 'other' });
    const token = `${head}.${payload}.${'A'.repeat(86)}`;
    expect(await verifyWithKey({ ...key, kid: 'other' }, token)).toEqual(REFUSED);
  });

  it.each<[string, string, number, object]>([
    ['is accepted', 'an RSA key of 2048 bits', 2048, {}],
    ['is not accepted', 'an RSA key of 1024 bits', 1024, {}],
    ['is not accepted', 'a key for encryption', 2048, { key_ops: ['verify', 'encrypt'] }],
    ['is not accepted', 'a key for what nobody knows', 2048, { key_ops: ['verify', 'x'] }],
  ])('%s with a valid signature by %s', async (outcome, _key, bits, changes) => {
    const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits });
    const [, payload] = (await issuer.sign()).split('.');
    const signed = `${encode({ alg: 'RS256', typ: 'at+jwt', kid: 'other' })}.${payload}`;
    const signature = sign('sha256', Buffer.from(signed), privateKey).toString('base64url');
    const key = { ...publicKey.export({ format: 'jwk' }), ...changes, kid: 'other' };
    const caller = await verifyWithKey(key, `${signed}.${signature}`);
    expect(caller).toEqual(outcome === 'is accepted' ? expect.objectContaining(ACCEPTED) : REFUSED);
  });

  it('is not checked while the keys are needed and cannot be fetched', async () => {
    issuer.setDown(true);
    const caller = verifier.verify(await issuer.sign());
    await expect(caller).rejects.toMatchObject({ code: issuerUnavailable.code });
    issuer.setDown(false);
  });

  it.each([
    'ES256',
    'ES384',
    'ES512',
    'EdDSA',
    'Ed25519',
    'RS256',
    'RS384',
    'RS512',
    'PS256',
    'PS384',
    'PS512',
  ])('is accepted with a signature by %s', async (algorithm) => {
    await issuer.rotateKey(algorithm);
    const token = await issuer.sign();
    expect(await verifier.verify(token)).toMatchObject(ACCEPTED);
  });
});

describe('a text is meant for this service', () => {
  let issuer: Issuer;
  let verifier: JwtVerifier;

  beforeAll(async () => {
    issuer = await startIssuer('ES256');
    verifier = new JwtVerifier({ issuer: issuer.url, audience: AUDIENCE });
  });
  afterAll(() => issuer.close());

  it.each<[string, () => Promise<string>]>([
    ['it is a JWT of this issuer, audience and type', () => issuer.sign()],
    ['it has this audience and others', () => issuer.sign({ aud: ['other', AUDIENCE] })],
    ['its type is written in full', () => issuer.sign({}, { typ: 'Application/AT+JWT' })],
    ['its key is unknown', () => issuer.sign({}, { kid: 'unknown' })],
  ])('if %s', async (_kind, write) => {
    expect(verifier.problemOf(await write())).toBeUndefined();
  });

  const NO_JWT = 'it is neither a JWT nor a token of this service, or not complete';

  it.each<[string, string, () => Promise<string> | string]>([
    ['another issuer', '"iss" is not', () => issuer.sign({ iss: 'https://example.org' })],
    ['a list of issuers', '"iss" is not', () => issuer.sign({ iss: [issuer.url] })],
    ['another audience', `"aud" does not contain ${AUDIENCE}`, () => issuer.sign({ aud: 'other' })],
    ['no audience', `"aud" does not contain ${AUDIENCE}`, () => issuer.sign({ aud: undefined })],
    ['another type', '"typ" is not at+jwt', () => issuer.sign({}, { typ: 'JWT' })],
    [
      'a type that is no text',
      '"typ" is not at+jwt',
      () => `${encode({ alg: 'ES256', typ: { toString: 1 } })}.e30.e30`,
    ],
    [
      'an algorithm that is no text',
      '"alg" is not an algorithm that is accepted',
      () => `${encode({ alg: { toString: 1 }, typ: 'at+jwt' })}.e30.e30`,
    ],
    [
      'an algorithm that is not accepted',
      '"alg" is not an algorithm that is accepted',
      () => `${encode({ alg: 'HS256', typ: 'at+jwt' })}.e30.e30`,
    ],
    ['no JSON', NO_JWT, () => 'a.b.c'],
    ['JSON that is no object', NO_JWT, () => `${encode(null)}.${encode(null)}.c`],
    ['two parts', NO_JWT, () => 'e30.e30'],
    ['no text', NO_JWT, () => ''],
  ])('but not if it has %s', async (_kind, reason, write) => {
    expect(verifier.problemOf(await write())).toContain(reason);
  });
});
