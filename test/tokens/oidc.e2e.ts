import { generateKeyPairSync } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { openTestDatabase, type TestDatabase } from '../setup/database/database.js';
import { fetchDocumented } from '../setup/http/fetch-documented.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { end, startOn, type BuiltService } from '../setup/service/built-service.js';
import { runInProcess } from '../setup/service/cli.js';
import { startService, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';
import { until } from '../setup/time/until.js';

const PLANT = '{"id":1,"name":"a"}';

// What makes a token invalid: jwt-verifier.spec.ts. When keys are fetched: issuer-keys.spec.ts.
describe('tokens of an identity provider', () => {
  const LIMIT = 10;
  let issuer: Issuer;
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_FAILURES_PER_MINUTE: String(LIMIT),
    });
  });
  afterAll(async () => {
    // First, because the connections to it are kept for the next request.
    await issuer.close();
    await service.close();
  });

  const postWith = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });
  const statusWith = async (token: string) => (await postWith(token)).status;

  /** The service waits for a second between two requests to the issuer. */
  const rotateKey = async () => {
    await issuer.rotateKey();
    await advance(1000);
  };

  it("are accepted in addition to the service's own tokens, also with many kilobytes, such as a list of groups", async () => {
    expect(await statusWith(service.token)).toBe(200);
    expect(await statusWith(await issuer.sign())).toBe(200);
    expect(await statusWith(await issuer.sign({ groups: 'g'.repeat(10_000) }))).toBe(200);
  });

  it('of a new key are accepted at once, and those of known keys while the provider is down', async () => {
    await rotateKey();
    expect(await statusWith(await issuer.sign())).toBe(200);
    issuer.setDown(true);
    expect(await statusWith(await issuer.sign())).toBe(200);
    issuer.setDown(false);
  });

  it('of an unknown key get 503 while the provider is down, not 401 or 429; the provider gets one request, and other tokens work', async () => {
    await rotateKey();
    issuer.setDown(true);
    const before = issuer.requests;
    const tokens = await Promise.all(Array.from({ length: LIMIT + 1 }, () => issuer.sign()));
    for (const response of await Promise.all(tokens.map(postWith))) {
      expect(response).toMatchObject({ status: 503, body: { error: 50303 } });
      expect(response.headers.get('retry-after')).toMatch(/^\d+$/);
    }
    expect(issuer.requests).toBe(before + 1);
    expect(await statusWith(service.token)).toBe(200);
    issuer.setDown(false);
    expect(await statusWith(tokens[0]!)).toBe(503);
    await advance(1000);
    expect(await statusWith(tokens[0]!)).toBe(200);
  });

  it('may have no kid: each of several keys may have signed them', async () => {
    const former = issuer.publicJwk;
    await rotateKey();
    issuer.documents['/keys'] = { keys: [former, issuer.publicJwk, { ...former, kid: 'other' }] };
    expect(await statusWith(await issuer.sign())).toBe(200);
    const token = await issuer.sign({}, { kid: undefined });
    expect(await statusWith(token)).toBe(200);
    const [head, claims, signature] = token.split('.');
    await advance(1000);
    expect(await statusWith(`${head}.${claims}.AAAA${signature!.slice(4)}`)).toBe(401);
  });

  it.each<[string, (jwk: object) => object]>([
    [
      'has 1024 bits',
      () => generateKeyPairSync('rsa', { modulusLength: 1024 }).publicKey.export({ format: 'jwk' }),
    ],
    ['is private', (jwk) => ({ ...jwk, d: 'AQAB' })],
    ['has a number where a text should be', (jwk) => ({ ...jwk, n: 5 })],
    ['is for encryption', (jwk) => ({ ...jwk, key_ops: ['verify', 'encrypt'] })],
  ])('are not valid if their key %s', async (_problem, change) => {
    await advance(1000);
    const { publicJwk } = issuer;
    issuer.documents['/keys'] = {
      keys: [publicJwk, { alg: 'RS256', ...change(publicJwk), kid: 'unusable' }],
    };
    const response = await postWith(await issuer.sign({}, { kid: 'unusable' }));
    expect(response).toMatchObject({ status: 401, body: { error: 40101 } });
  });
});

describe('an operator of a service with an identity provider', () => {
  const METADATA = '/.well-known/openid-configuration';
  let issuer: Issuer;
  let database: TestDatabase;
  let token: string;
  let service: BuiltService;
  /** What the metadata, and so the tokens, call the issuer. */
  let name: string;

  /** Starts a service with the tokens of an issuer whose metadata call it `iss`. */
  function startWith(provider: Issuer, iss: string): Promise<BuiltService> {
    provider.documents[METADATA] = { issuer: iss, jwks_uri: `${provider.url}/keys` };
    // Many identity providers show the URL of their metadata.
    const OIDC_ISSUER = provider.url + METADATA;
    return startOn(database.url, { OIDC_ISSUER, OIDC_AUDIENCE: AUDIENCE });
  }

  beforeAll(async () => {
    issuer = await startIssuer('ES256');
    database = await openTestDatabase();
    name = `${issuer.url}/`;
    service = await startWith(issuer, name);
    const create = ['token', 'create', 'greenhouse'];
    token = (await runInProcess(create, { DATABASE_URL: database.url })).stdout.trim();
  });
  afterAll(async () => {
    await end(service.command);
    await issuer.close();
    await database.close();
  });

  const postWith = (bearer: string, requestId = 'any', { url } = service) =>
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
  async function entryWith(text: string, { command } = service): Promise<Record<string, unknown>> {
    const [line] = await command.waitFor(new RegExp(`^.*${text}.*$`, 'm'));
    return JSON.parse(line) as Record<string, unknown>;
  }

  it('learns at the start, and from each refused token, that the metadata name another issuer', async () => {
    const other = await startIssuer('ES256');
    const mistaken = await startWith(other, 'https://example.org');
    try {
      const problem = `OIDC_ISSUER is "${other.url}${METADATA}", but the issuer in ${other.url}${METADATA} is "https://example.org"`;
      const warning = await entryWith('tokens of OIDC_ISSUER', mistaken);
      expect(warning['msg']).toContain(problem);
      const response = await postWith(await other.sign(), 'mistake', mistaken);
      // Its client should not try again at once.
      expect(response.headers.get('retry-after')).toBe('60');
      expect(await response.json()).toEqual({
        error: 50303,
        message: expect.stringContaining('Inform the operator'),
      });
      expect((await entryWith('"mistake"', mistaken))['cause']).toContain(problem);
      expect((await postWith(token, 'any', mistaken)).status).toBe(200);
      other.documents[METADATA] = { issuer: other.url, jwks_uri: `${other.url}/keys` };
      const statusWithKey = async () =>
        (await postWith(await other.sign(), 'any', mistaken)).status;
      await until(async () => (await statusWithKey()) === 200);
    } finally {
      await end(mistaken.command);
      await other.close();
    }
  });

  it('may have forgotten a slash: the tokens must name the issuer exactly as the metadata do', async () => {
    expect((await postWith(await issuer.sign({ iss: name }))).status).toBe(200);
    const response = await postWith(await issuer.sign({ iss: issuer.url }), 'slash');
    expect(response.status).toBe(401);
    expect(await entryWith('"slash"')).toMatchObject({ cause: 'unexpected "iss" claim value' });
  });

  it('finds in the log why a token was refused, and no part of it', async () => {
    const refused = {
      'other-aud': [
        `"aud" does not contain ${AUDIENCE}`,
        await issuer.sign({ iss: name, aud: 'other' }),
      ],
      expired: ['"exp" claim timestamp check failed', await issuer.sign({ iss: name, exp: 1 })],
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
      for (const part of bearer.split('.')) expect(service.command.stdout).not.toContain(part);
    }
  });

  it('finds in the log the token of a request, also of one that needs none', async () => {
    await postWith(token, 'closed');
    const headers = { authorization: `Bearer ${token}`, 'x-request-id': 'open' };
    await fetchDocumented(`${service.url}/health/live`, { headers });
    for (const id of ['closed', 'open'])
      expect(await entryWith(`"${id}"`)).toMatchObject({ token: 'greenhouse' });
  });
});
