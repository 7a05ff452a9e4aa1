import { createHmac, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { holdClock } from '../setup/time/clock.js';
import { AUDIENCE, startIssuer, type Issuer } from './issuer.js';
import { startService, type TestService } from '../setup/service/service.js';

const PLANT = '{"id":1,"name":"a"}';
const NOW = Math.floor(Date.now() / 1000);

const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** Names an unknown key: only the issuer can say whether it exists. */
const UNKNOWN_KEY_HEADER = Buffer.from('{"alg":"RS256","kid":"x","typ":"at+jwt"}').toString(
  'base64url',
);

describe('access tokens of an identity provider', () => {
  let issuer: Issuer;
  let service: TestService;

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE });
  });
  afterAll(async () => {
    // First, because the connections to it are kept for the next request.
    await issuer.close();
    await service.close();
  });

  const postWith = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });

  async function expectRefused(token: string) {
    const response = await postWith(token);
    expect(response).toMatchObject({ status: 401, body: { error: 40101 } });
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="plant-store", error="invalid_token"',
    );
  }

  it("are accepted in addition to the service's own tokens", async () => {
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    expect(await postWith(service.token)).toMatchObject({ status: 200 });
  });

  it.each<[string, Record<string, unknown>]>([
    ['several audiences, including the configured one', { aud: ['other', AUDIENCE] }],
    ['times a few seconds in the future', { nbf: NOW + 3, iat: NOW + 3 }],
  ])('are accepted with %s', async (_kind, changes) => {
    expect(await postWith(await issuer.sign(changes))).toMatchObject({ status: 200 });
  });

  it.each<[string, Record<string, unknown>]>([
    ['of another audience', { aud: 'other' }],
    ['of no audience', { aud: undefined }],
    ['of another issuer', { iss: 'https://example.org' }],
    ['that expired', { exp: NOW - 60 }],
    ['that never expires', { exp: undefined }],
    ['that is not valid yet', { nbf: NOW + 60 }],
    ['that was issued in the future', { iat: NOW + 60 }],
    ['that does not say when it was issued', { iat: undefined }],
    ['whose subject is empty', { sub: '' }],
    ['whose subject is an object', { sub: { a: 1 } }],
    ['whose client is not a string', { client_id: false }],
    ['without an id', { jti: undefined }],
    ['without a subject', { sub: undefined }],
    ['without a client', { client_id: undefined }],
  ])('are refused if they are signed for a token %s', async (_kind, changes) => {
    await expectRefused(await issuer.sign(changes));
  });

  it.each<[string, Record<string, unknown>]>([
    ['an ID token', { typ: 'JWT' }],
    ['no type', { typ: undefined }],
    ['an unknown key', { kid: 'other' }],
    ['an extension that must be understood', { crit: ['x'], x: 1 }],
  ])('are refused with the header of %s', async (_kind, header) => {
    // jose refuses to sign such a header, so the signature belongs to another one.
    const [, payload, signature] = (await issuer.sign()).split('.');
    const { kid } = issuer.publicJwk;
    await expectRefused(
      `${encode({ alg: 'RS256', typ: 'at+jwt', kid, ...header })}.${payload}.${signature}`,
    );
  });

  it('are refused if they are ID tokens, even with a valid signature', async () => {
    await expectRefused(await issuer.sign({}, { typ: 'JWT' }));
  });

  it.each(['none', 'None', 'NONE', ''])('are refused with the algorithm %j', async (alg) => {
    const [, payload, signature] = (await issuer.sign()).split('.');
    await expectRefused(`${encode({ alg, typ: 'at+jwt' })}.${payload}.`);
    await expectRefused(`${encode({ alg, typ: 'at+jwt' })}.${payload}.${signature}`);
  });

  it('are refused if the public key was used as a shared secret', async () => {
    const [, payload] = (await issuer.sign()).split('.');
    const pem = createPublicKey({ key: issuer.publicJwk, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString();
    const head = encode({ alg: 'HS256', typ: 'at+jwt', kid: issuer.publicJwk.kid });
    for (const secret of [pem, JSON.stringify(issuer.publicJwk), issuer.publicJwk.n!]) {
      const signature = createHmac('sha256', secret)
        .update(`${head}.${payload}`)
        .digest('base64url');
      await expectRefused(`${head}.${payload}.${signature}`);
    }
  });

  it('are refused if signed with a key of the sender, even if the header contains or names a key', async () => {
    const { privateKey } = await generateKeyPair('RS256');
    const [, payload] = (await issuer.sign()).split('.');
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as Record<
      string,
      unknown
    >;
    for (const extra of [{}, { jwk: issuer.publicJwk }, { jku: 'http://127.0.0.1:1/keys' }]) {
      await expectRefused(
        await new SignJWT(claims)
          .setProtectedHeader({ alg: 'RS256', typ: 'at+jwt', kid: issuer.publicJwk.kid!, ...extra })
          .sign(privateKey),
      );
    }
  });

  it('are refused if any part was changed', async () => {
    const [head, payload, signature] = (await issuer.sign()).split('.');
    const claims = JSON.parse(Buffer.from(payload!, 'base64url').toString()) as object;
    await expectRefused(`${head}.${encode({ ...claims, sub: 'admin' })}.${signature}`);
    await expectRefused(`${head}.${payload}.${signature!.slice(0, -8)}AAAAAAAA`);
    await expectRefused(`${head}.${payload}.`);
    await expectRefused(`${head}.${payload}`);
  });
});

describe('an identity provider', () => {
  let issuer: Issuer;
  let service: TestService;
  const advance = holdClock();

  /** The service waits for a second between two requests to the issuer. */
  const rotateKey = async (algorithm?: string) => {
    await issuer.rotateKey(algorithm);
    await advance(1000);
  };

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_FAILURES_PER_MINUTE: '1000000',
    });
  });
  afterAll(async () => {
    // First, because the connections to it are kept for the next request.
    await issuer.close();
    await service.close();
  });

  const postWith = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });

  it("that is down: its tokens get 503 and not 401, and the service's own tokens work", async () => {
    issuer.setDown(true);
    const token = await issuer.sign();
    const response = await postWith(token);
    expect(response).toMatchObject({ status: 503, body: { error: 50303 } });
    expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    expect(await postWith(service.token)).toMatchObject({ status: 200 });
    issuer.setDown(false);
    expect(await postWith(token)).toMatchObject({ status: 503 });
    await advance(1000);
    expect(await postWith(token)).toMatchObject({ status: 200 });
  });

  it('receives one request for its keys, and not one for each token', async () => {
    const before = issuer.requests;
    for (let i = 0; i < 5; i++) await postWith(await issuer.sign());
    expect(issuer.requests).toBe(before);
  });

  it('may change its key: the next token is accepted', async () => {
    await rotateKey();
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
  });

  it.each([
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
  ])('may sign with %s', async (algorithm) => {
    await rotateKey(algorithm);
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
  });
});

describe('an identity provider that fails', () => {
  holdClock();

  it('with a key that cannot be used: tokens that name it get 401, and count as wrong ones', async () => {
    const weak = await startIssuer();
    const { publicKey } = generateKeyPairSync('rsa', { modulusLength: 1024 });
    const { publicJwk } = weak;
    weak.documents['/keys'] = {
      keys: [
        publicJwk,
        { ...publicKey.export({ format: 'jwk' }), kid: 'weak' },
        { ...publicJwk, kid: 'private', d: 'AQAB' },
      ],
    };
    const other = await startService({
      OIDC_ISSUER: weak.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_FAILURES_PER_MINUTE: '2',
    });
    const postWith = (token: string) => other.post(PLANT, { authorization: `Bearer ${token}` });
    try {
      for (const kid of ['weak', 'private']) {
        const token = await weak.sign({}, { kid });
        expect(await postWith(token)).toMatchObject({ status: 401, body: { error: 40101 } });
      }
      expect(await postWith(await weak.sign({}, { kid: 'weak' }))).toMatchObject({ status: 429 });
    } finally {
      await weak.close();
      await other.close();
    }
  });

  it('does not delay other tokens, causes no 429, and does not receive a request for every unknown key', async () => {
    const failing = await startIssuer();
    failing.setDown(true);
    const other = await startService({ OIDC_ISSUER: failing.url, OIDC_AUDIENCE: AUDIENCE });
    try {
      expect(await other.post(PLANT)).toMatchObject({ status: 200 });
      const refused = await Promise.all(
        Array.from({ length: 400 }, (_, i) =>
          other.post(PLANT, { authorization: `Bearer ${UNKNOWN_KEY_HEADER}.${i}000.AAAA` }),
        ),
      );
      expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]));
      expect(failing.requests).toBe(1);
      expect(await other.post(PLANT)).toMatchObject({ status: 200 });
    } finally {
      await failing.close();
      await other.close();
    }
  });
});
