import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { holdClock } from '../setup/time/clock.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const PLANT = '{"id":1,"name":"a"}';

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

  it("are accepted in addition to the service's own tokens", async () => {
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    expect(await postWith(service.token)).toMatchObject({ status: 200 });
  });

  it('are refused from their expiry on, although they are in the cache', async () => {
    const now = Math.floor(Date.now() / 1000);
    // The clock of the issuer may be five seconds slow.
    const token = await issuer.sign({ iat: now - 60, exp: now - 2 });
    expect(await postWith(token)).toMatchObject({ status: 200 });
    await until(async () => (await postWith(token)).status === 401);
  });

  // What else makes them invalid: jwt-verifier.spec.ts.
  it('are refused if they are for another audience, even with a valid signature', async () => {
    const response = await postWith(await issuer.sign({ aud: 'other' }));
    expect(response).toMatchObject({ status: 401, body: { error: 40101 } });
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="plant-store", error="invalid_token"',
    );
  });
});

describe('an identity provider', () => {
  let issuer: Issuer;
  let service: TestService;
  const advance = holdClock();

  /** The service waits for a second between two requests to the issuer. */
  const rotateKey = async () => {
    await issuer.rotateKey();
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

  it('receives no further request for its keys with each token', async () => {
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    const before = issuer.requests;
    for (let i = 0; i < 5; i++) await postWith(await issuer.sign());
    expect(issuer.requests).toBe(before);
  });

  it('may change its key: tokens of the new one are accepted at once', async () => {
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    await rotateKey();
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
  });

  // When it is not: issuer-keys.spec.ts.
  it('that is down: tokens of its known keys work', async () => {
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    issuer.setDown(true);
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    issuer.setDown(false);
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

  it('does not delay other tokens, causes no 429, and does not receive a request for each of them', async () => {
    const failing = await startIssuer();
    failing.setDown(true);
    const other = await startService({ OIDC_ISSUER: failing.url, OIDC_AUDIENCE: AUDIENCE });
    try {
      expect(await other.post(PLANT)).toMatchObject({ status: 200 });
      const tokens = await Promise.all(Array.from({ length: 400 }, () => failing.sign()));
      const refused = await Promise.all(
        tokens.map((token) => other.post(PLANT, { authorization: `Bearer ${token}` })),
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
