import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Logger } from 'pino';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { PINO_LOGGER } from '../../src/logging/logging.module.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { openConnection, plantRequest, readResponses } from '../setup/http/raw-http.js';
import { startService, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';
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
});

describe('the result of a check', () => {
  let service: TestService;
  let tokens: AccessTokensService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
    tokens = service.app.get(AccessTokensService);
  });
  afterAll(() => service.close());

  it.each(['revoked', 'rotated'] as const)(
    'is cached for four seconds: a token that is %s works no longer than that',
    async (how) => {
      const authorization = `Bearer ${(await tokens.create(how)).token}`;
      const post = () => service.post(PLANT, { authorization });
      expect(await post()).toMatchObject({ status: 200 });
      const [token] = await tokens.findLive(how);
      if (how === 'revoked') await tokens.revoke([token!.id]);
      else await tokens.rotate(how, 0);
      await advance(4001);
      expect(await post()).toMatchObject({ status: 401, body: { error: 40101 } });
    },
  );

  it('is cached for as long while the database is away, and then the token gets 503 and not 401', async () => {
    const authorization = `Bearer ${(await tokens.create('away')).token}`;
    const send = () => service.post('{}', { authorization });
    expect(await send()).toMatchObject({ status: 400 });
    service.proxy.cut();
    await service.database.query("UPDATE access_tokens SET revoked_at = now() WHERE name = 'away'");
    for (let i = 0; i < 4; i++) {
      expect(await send()).toMatchObject({ status: 400 });
      await advance(1000);
    }
    await advance(1);
    expect(await send()).toMatchObject({ status: 503, body: { error: 50300 } });
    service.proxy.restore();
    expect(await send()).toMatchObject({ status: 401, body: { error: 40101 } });
  });
});

const LIMIT = 5;
const MALFORMED = 'plantstore_0';

describe('an address that has sent far too many wrong tokens', () => {
  let issuer: Issuer;
  let service: TestService;

  beforeAll(async () => {
    issuer = await startIssuer();
    service = await startService({
      AUTH_FAILURES_PER_MINUTE: String(LIMIT),
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
    });
    for (let i = 0; i < LIMIT; i++) {
      expect(await postWith(generateAccessToken())).toMatchObject({ body: { error: 40101 } });
    }
  });
  afterAll(async () => {
    // First, because the connections to it are kept for the next request.
    await issuer.close();
    await service.close();
  });

  const postWith = (token: string) => service.post(PLANT, { authorization: `Bearer ${token}` });

  it.each<[string, () => Promise<string> | string]>([
    ['unknown token', generateAccessToken],
    ['malformed token', () => MALFORMED],
    ['text that no token can be', () => 'a, b'],
    ['JWT for another audience', () => issuer.sign({ aud: 'other' })],
    ['JWT with an unknown key', () => issuer.sign({}, { kid: 'unknown' })],
  ])('gets 429 for a wrong one: %s', async (_kind, write) => {
    const response = await postWith(await write());
    expect(response).toMatchObject({ status: 429, body: { error: 42900 } });
    expect(Number(response.headers.get('retry-after'))).toBeGreaterThan(0);
  });

  it('is served with a valid token that the service has not seen before, also after a restart', async () => {
    const { token } = await service.app.get(AccessTokensService).create('new');
    expect(await postWith(token)).toMatchObject({ status: 200 });
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    const flood = () => Array.from({ length: 10 * LIMIT }, () => postWith(generateAccessToken()));
    await Promise.all(flood());
    await service.restart();
    const guesses = flood();
    expect(await postWith(token)).toMatchObject({ status: 200 });
    expect(await postWith(await issuer.sign())).toMatchObject({ status: 200 });
    const statuses = (await Promise.all(guesses)).map(({ status }) => status);
    expect(statuses.filter((status) => status === 401)).toHaveLength(LIMIT);
    expect(statuses.filter((status) => status === 429)).toHaveLength(9 * LIMIT);
  });

  it('sends no query with a malformed token', async () => {
    service.proxy.cut();
    expect(await postWith(MALFORMED)).toMatchObject({ status: 429 });
    expect(await postWith(generateAccessToken())).toMatchObject({ body: { error: 50300 } });
    service.proxy.restore();
  });
});

describe('tokens that could not be checked because the database was away', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService({ AUTH_FAILURES_PER_MINUTE: '1' });
  });
  afterAll(() => service.close());

  it('do not count as wrong', async () => {
    service.proxy.cut();
    const guess = () => service.post(PLANT, { authorization: `Bearer ${generateAccessToken()}` });
    for (let i = 0; i < 3; i++) expect(await guess()).toMatchObject({ body: { error: 50300 } });
    service.proxy.restore();
    expect(await guess()).toMatchObject({ body: { error: 40101 } });
    expect(await guess()).toMatchObject({ body: { error: 42900 } });
  });
});

describe('the address of a wrong token', () => {
  const guessFrom = (service: TestService, forwardedFor: string) =>
    service.post(PLANT, {
      authorization: `Bearer ${MALFORMED}`,
      'x-forwarded-for': forwardedFor,
    });

  it.each<[string, Record<string, string>, string[]]>([
    ['is not what the client writes', {}, ['192.0.2.1', '192.0.2.2']],
    [
      'is what the trusted proxy saw',
      { TRUSTED_PROXY_HOPS: '1' },
      ['198.51.100.1, 192.0.2.1', '198.51.100.2, 192.0.2.1'],
    ],
  ])('%s', async (_rule, env, [first, second]) => {
    const service = await startService({ AUTH_FAILURES_PER_MINUTE: '1', ...env });
    try {
      expect(await guessFrom(service, first!)).toMatchObject({ status: 401 });
      expect(await guessFrom(service, second!)).toMatchObject({ status: 429 });
      const other = await guessFrom(service, '192.0.2.9');
      expect(other.status).toBe('TRUSTED_PROXY_HOPS' in env ? 401 : 429);
    } finally {
      await service.close();
    }
  });
});

describe('the last use of a token, when it cannot be written', () => {
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
    await service.database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON access_tokens EXECUTE FUNCTION refuse()`,
    );
  });
  afterAll(() => service.close());

  it('fails no request, is logged once a minute, and is written a minute later', async () => {
    const warn = jest.spyOn(service.app.get<Logger>(PINO_LOGGER), 'warn');
    const lastUse = async () => {
      const [row] = await service.database.query<{ at: Date | null }>(
        `SELECT last_used_at AS at FROM access_tokens WHERE name = 'test'`,
      );
      return row!.at;
    };
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    await until(() => warn.mock.calls.length > 0);
    expect(warn).toHaveBeenCalledWith(
      expect.stringMatching(/^The last use of a token could not be written: .*refused/),
    );
    await advance(59_999);
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    expect(warn).toHaveBeenCalledTimes(1);
    await service.database.query('DROP TRIGGER refuse ON access_tokens');
    expect(await lastUse()).toBeNull();
    await advance(4001);
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    await until(async () => (await lastUse()) !== null);
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
