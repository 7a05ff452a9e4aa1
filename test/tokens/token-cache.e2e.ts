import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken, hashAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { holdClock } from '../setup/time/clock.js';
import { openConnection, plantRequest, readResponses } from '../setup/http/raw-http.js';
import { startService, type TestResponse, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const PLANT = '{"id":1,"name":"a"}';

describe('a token that was verified', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  it('still works while the database is away', async () => {
    await service.post('{}');
    service.proxy.cut();
    // 40005: past the guard, stopped by the validation.
    expect(await service.post('{}')).toMatchObject({ body: { error: 40005 } });
    service.proxy.restore();
  });

  it('does not make another token on its connection valid', async () => {
    const right = service.token;
    const send = (token: string) => plantRequest(token, PLANT);
    const socket = await openConnection(service.port);
    socket.write([right, right, generateAccessToken(), `${right}x`, right].map(send).join(''));
    const responses = await readResponses(socket, 5);
    socket.destroy();
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 401, 401, 200]);
  });

  it('does not make another token valid whose SHA-256 begins with the same 48 bits', async () => {
    const prefix = 'plantstore_000000000000000000000000000000000000000';
    const [token, other] = [`${prefix}XvYE3cYvAf`, `${prefix}Fdff2daj3N`];
    const beginnings = [token, other].map((it) => hashAccessToken(it).toString('hex', 0, 6));
    expect(new Set(beginnings).size).toBe(1);
    await service.database.query(
      `INSERT INTO access_tokens (id, name, hash)
       VALUES ('1', 'similar', '\\x${hashAccessToken(token).toString('hex')}')`,
    );
    const postWith = (it: string) => service.post(PLANT, { authorization: `Bearer ${it}` });
    expect(await postWith(token)).toMatchObject({ status: 200 });
    expect(await postWith(other)).toMatchObject({ status: 401, body: { error: 40101 } });
  });
});

describe('the verdict about a token', () => {
  let service: TestService;
  let tokens: AccessTokensService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
    tokens = service.app.get(AccessTokensService);
  });
  afterAll(() => service.close());

  it.each(['revoked', 'expired'] as const)(
    'ends after two seconds for a token that is used and %s',
    async (how) => {
      const authorization = `Bearer ${(await tokens.create(how)).token}`;
      const post = () => service.post(PLANT, { authorization });
      expect(await post()).toMatchObject({ status: 200 });
      const [token] = await tokens.findLive(how);
      if (how === 'revoked') await tokens.revoke([token!.id]);
      else await tokens.rotate(how, 0);
      await advance(1999);
      expect(await post()).toMatchObject({ status: 200 });
      await advance(1);
      // The first of these requests has the token looked up in the background.
      await until(async () => (await post()).status !== 200);
      expect(await post()).toMatchObject({ status: 401, body: { error: 40101 } });
    },
  );

  it('ends after four seconds for a token that is revoked while the database is away, and it gets 401 afterwards', async () => {
    const authorization = `Bearer ${(await tokens.create('away')).token}`;
    const send = () => service.post('{}', { authorization });
    expect(await send()).toMatchObject({ status: 400 });
    service.proxy.cut();
    await service.database.query("UPDATE access_tokens SET revoked_at = now() WHERE name = 'away'");
    // Used all the time: no lookup that fails lengthens its life.
    for (let i = 0; i < 4; i++) {
      expect(await send()).toMatchObject({ status: 400 });
      await advance(1000);
    }
    expect(await send()).toMatchObject({ status: 503, body: { error: 50300 } });
    service.proxy.restore();
    expect(await send()).toMatchObject({ status: 401, body: { error: 40101 } });
  });
});

const LIMIT = 5;

const startLimited = (env: Record<string, string> = {}) =>
  startService({ AUTH_FAILURES_PER_MINUTE: String(LIMIT), ...env });

const guess = (service: TestService, headers: Record<string, string> = {}) =>
  service.post(PLANT, { authorization: `Bearer ${generateAccessToken()}`, ...headers });

describe('too many wrong tokens from one address', () => {
  /** Sends requests that all arrive before the database responds. */
  async function whileFrozen(
    service: TestService,
    count: number,
    send: (i: number) => Promise<TestResponse>,
  ): Promise<TestResponse[]> {
    let arrived = 0;
    const onRequest = () => arrived++;
    service.app.getHttpServer().on('request', onRequest);
    service.proxy.freeze();
    const responses = Array.from({ length: count }, (_, i) => send(i));
    await until(() => arrived === count);
    service.app.getHttpServer().off('request', onRequest);
    service.proxy.restore();
    return Promise.all(responses);
  }

  it('are refused with 429 and without a query, while a token that was valid still works', async () => {
    const service = await startLimited();
    try {
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
      for (let i = 0; i < LIMIT; i++) {
        expect(await guess(service)).toMatchObject({ status: 401, body: { error: 40101 } });
      }
      service.proxy.cut();
      const before = service.proxy.connections;
      const refused = await guess(service);
      expect(service.proxy.connections).toBe(before);
      service.proxy.restore();
      expect(refused).toMatchObject({
        status: 429,
        body: { error: 42900, message: expect.any(String) },
      });
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    } finally {
      service.proxy.restore();
      await service.close();
    }
  });

  it('do not include tokens without a verdict: many new valid tokens at once are all accepted', async () => {
    const service = await startLimited();
    try {
      const accessTokens = service.app.get(AccessTokensService);
      const secrets: string[] = [];
      while (secrets.length < 3 * LIMIT) secrets.push((await accessTokens.create('new')).token);
      const responses = await whileFrozen(service, secrets.length, (i) =>
        service.post(PLANT, { authorization: `Bearer ${secrets[i]}` }),
      );
      expect(responses.map(({ status }) => status)).toEqual(Array(secrets.length).fill(200));
    } finally {
      await service.close();
    }
  });

  it('do not include tokens that could not be checked because the database was away', async () => {
    const service = await startLimited();
    try {
      service.proxy.cut();
      for (let i = 0; i < 3 * LIMIT; i++) {
        expect(await service.post(PLANT)).toMatchObject({ status: 503, body: { error: 50300 } });
        expect(await guess(service)).toMatchObject({ status: 503, body: { error: 50300 } });
      }
      const responses = await Promise.all(Array.from({ length: 3 * LIMIT }, () => guess(service)));
      expect(responses.map(({ status }) => status)).toEqual(Array(3 * LIMIT).fill(503));
      service.proxy.restore();
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    } finally {
      await service.close();
    }
  });

  it('of an unknown form do not block a valid token that is new to the service', async () => {
    const service = await startLimited();
    try {
      for (let i = 0; i < LIMIT; i++) {
        await service.post(PLANT, { authorization: `Bearer unknown${i}` });
      }
      expect(await service.post(PLANT, { authorization: 'Bearer unknown' })).toMatchObject({
        status: 429,
      });
      expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    } finally {
      await service.close();
    }
  });

  it('cannot be hidden with X-Forwarded-For', async () => {
    const service = await startLimited();
    try {
      for (let i = 0; i < LIMIT; i++) await guess(service, { 'x-forwarded-for': `192.0.2.${i}` });
      expect(await guess(service, { 'x-forwarded-for': '192.0.2.99' })).toMatchObject({
        status: 429,
      });
    } finally {
      await service.close();
    }
  });
});

describe('the limit on wrong tokens', () => {
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startLimited();
  });
  afterAll(() => service.close());

  it('applies to a token that is revoked: it gets 401 when its verdict is too old, and then counts as wrong', async () => {
    const tokens = service.app.get(AccessTokensService);
    const authorization = `Bearer ${(await tokens.create('leaked')).token}`;
    const post = () => service.post(PLANT, { authorization });
    expect(await post()).toMatchObject({ status: 200 });
    const [token] = await tokens.findLive('leaked');
    await tokens.revoke([token!.id]);
    await advance(4000);
    // The first response comes from the lookup, which is exempt because the token was valid until then.
    for (let i = 0; i < 1 + LIMIT; i++) {
      expect(await post()).toMatchObject({ status: 401 });
      await advance(4001);
    }
    expect(await post()).toMatchObject({ status: 429 });
  });
});

describe('too many wrong tokens from one address behind a trusted proxy', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startLimited({ TRUSTED_PROXY_HOPS: '1' });
  });
  afterAll(() => service.close());

  it('are counted by the address that the trusted proxy saw, not by the header field that a client sent', async () => {
    for (let i = 0; i < LIMIT; i++) {
      await guess(service, { 'x-forwarded-for': `198.51.100.${i}, 192.0.2.1` });
    }
    expect(await guess(service, { 'x-forwarded-for': '192.0.2.1' })).toMatchObject({
      status: 429,
    });
    expect(await guess(service, { 'x-forwarded-for': '192.0.2.2' })).toMatchObject({
      status: 401,
    });
  });
});
