import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { holdClock } from '../setup/time/clock.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import type { Command } from '../setup/process/command.js';
import { end, runService, urlOf } from '../setup/service/built-service.js';
import { startService, type TestService } from '../setup/service/service.js';
import { createToken } from '../setup/service/tokens.js';
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
    await rotateKey();
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

  it('may publish several keys of a kind: a token without a kid is accepted if one of them has signed it', async () => {
    const former = issuer.publicJwk;
    await rotateKey();
    issuer.documents['/keys'] = { keys: [former, issuer.publicJwk, { ...former, kid: 'other' }] };
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    expect(await postWith(await issuer.sign({}, { kid: undefined }))).toMatchObject({
      status: 200,
    });
    const [head, claims, signature] = (await issuer.sign({}, { kid: undefined })).split('.');
    await advance(1000);
    expect(await postWith(`${head}.${claims}.AAAA${signature!.slice(4)}`)).toMatchObject({
      status: 401,
    });
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

describe('an operator of a service with an identity provider', () => {
  const METADATA = '/.well-known/openid-configuration';
  let issuer: Issuer;
  let database: TestDatabase;
  let token: string;
  let command: Command;
  let url: string;

  beforeAll(async () => {
    issuer = await startIssuer();
    database = await openTestDatabase();
    token = await createToken(database.url);
    issuer.documents[METADATA] = { issuer: 'https://example.org', jwks_uri: `${issuer.url}/keys` };
    command = runService({
      DATABASE_URL: database.url,
      OIDC_ISSUER: `${issuer.url}${METADATA}`,
      OIDC_AUDIENCE: AUDIENCE,
    });
    url = await urlOf(command);
  });
  afterAll(async () => {
    await issuer.close();
    await end(command);
    await database.close();
  });

  const postWith = (bearer: string, requestId = 'any') =>
    fetchDocumented(`${url}/plants`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${bearer}`,
        'content-type': 'application/json',
        'x-request-id': requestId,
      },
      body: PLANT,
    });

  /** The log entry with this text. */
  async function entryWith(text: string): Promise<Record<string, unknown>> {
    const [line] = await command.waitFor(new RegExp(`^.*${text}.*$`, 'm'));
    return JSON.parse(line) as Record<string, unknown>;
  }

  it('learns at the start, and with each refused token, that the metadata name another issuer; nobody is told to wait a moment', async () => {
    const problem = `OIDC_ISSUER is "${issuer.url}${METADATA}", but the issuer in ${issuer.url}${METADATA} is "https://example.org"`;
    expect((await entryWith('tokens of OIDC_ISSUER'))['msg']).toContain(problem);
    const response = await postWith(await issuer.sign(), 'mistake');
    expect(response.headers.get('retry-after')).toBe('60');
    expect(await response.json()).toEqual({
      error: 50303,
      message: expect.stringContaining('Inform the operator'),
    });
    expect((await entryWith('"mistake"'))['cause']).toContain(problem);
    expect((await postWith(token)).status).toBe(200);
  });

  it('may have forgotten a slash: the tokens must name the issuer exactly as the metadata do', async () => {
    const name = `${issuer.url}/`;
    issuer.documents[METADATA] = { issuer: name, jwks_uri: `${name}keys` };
    await until(async () => (await postWith(await issuer.sign({ iss: name }))).status === 200);
    const response = await postWith(await issuer.sign({ iss: issuer.url }), 'slash');
    expect(response.status).toBe(401);
    expect(await entryWith('"slash"')).toMatchObject({ cause: 'unexpected "iss" claim value' });
  });

  it('finds in the log why a token was refused, and no part of it', async () => {
    const now = Math.floor(Date.now() / 1000);
    const sign = (changes: object, header?: Record<string, unknown>) =>
      issuer.sign({ iss: `${issuer.url}/`, ...changes }, header);
    const refused = {
      'wrong-typ': ['"typ" is not at+jwt', await sign({}, { typ: 'JWT' })],
      'no-aud': [`"aud" does not contain ${AUDIENCE}`, await sign({ aud: undefined })],
      'other-aud': [`"aud" does not contain ${AUDIENCE}`, await sign({ aud: 'other' })],
      expired: ['"exp" claim timestamp check failed', await sign({ exp: now - 60 })],
      'iat-ahead': ['"iat" is in the future', await sign({ iat: now + 60 })],
      'no-sub': ['"sub" is not a text, or empty', await sign({ sub: undefined })],
      crit: ['its header or its key is not supported', await sign({}, { crit: ['x'], x: 1 })],
      'no-jwt': [
        'it is neither a JWT nor a token of this service, or not complete',
        'nonsense.nonsense',
      ],
      'cut-off': [
        'it is neither a JWT nor a token of this service, or not complete',
        token.slice(0, -1),
      ],
      unknown: ['it is unknown, expired or revoked', generateAccessToken()],
    } as const;
    for (const [requestId, [cause, bearer]] of Object.entries(refused)) {
      // The second one is in the cache.
      for (const id of [requestId, `${requestId}-2`]) {
        expect((await postWith(bearer, id)).status).toBe(401);
        expect(await entryWith(`"${id}"`)).toMatchObject({ error: 40101, cause });
      }
      for (const part of bearer.split('.')) expect(command.stdout).not.toContain(part);
    }
  });
});
