import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Logger } from 'pino';
import { Registry } from 'prom-client';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { PINO_LOGGER } from '../../src/logging/logging.module.js';
import { AUDIENCE, startIssuer, type Issuer } from '../setup/http/issuer.js';
import { openConnection, plantRequest, readResponses } from '../setup/http/raw-http.js';
import { metricIn } from '../setup/service/metrics.js';
import { startService, type TestService } from '../setup/service/service.js';
import { holdClock } from '../setup/time/clock.js';
import { until } from '../setup/time/until.js';

const PLANT = '{"id":1,"name":"a"}';
const LIMIT = 5;

describe('the check of a token', () => {
  let issuer: Issuer;
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    issuer = await startIssuer('ES256');
    service = await startService({
      AUTH_FAILURES_PER_MINUTE: String(LIMIT),
      TRUSTED_PROXY_HOPS: '1',
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
    });
  });
  afterAll(async () => {
    // First, because the connections to it are kept for the next request.
    await issuer.close();
    await service.close();
  });

  const tokens = () => service.app.get(AccessTokensService);

  /** Sends a plant with a token, each test from an address of its own. */
  const post = (token: string, address = '192.0.2.1') =>
    service.post(PLANT, { authorization: `Bearer ${token}`, 'x-forwarded-for': address });
  const statusOf = async (token: string, address: string) => (await post(token, address)).status;

  /** Sends so many wrong tokens that the next one exceeds the limit. */
  const exhaust = async (address: string) => {
    for (let i = 0; i < LIMIT; i++) expect(await statusOf('wrong', address)).toBe(401);
  };

  const metrics = () => service.app.get(Registry).metrics();
  const checks = async (outcome: string) =>
    metricIn(await metrics(), `plant_store_token_checks_total{outcome="${outcome}"}`) ?? 0;

  it.each(['revoked', 'rotated'] as const)(
    'is remembered for four seconds: a token that is %s works no longer than that',
    async (how) => {
      const { token, id } = await tokens().create(how);
      expect(await post(token)).toMatchObject({ status: 200 });
      if (how === 'revoked') await tokens().revoke([id]);
      else await tokens().rotate(how, 0);
      await advance(4001);
      expect(await post(token)).toMatchObject({ status: 401, body: { error: 40101 } });
    },
  );

  it('is remembered for as long while the database is away, and then the token gets 503 and not 401', async () => {
    const { token, id } = await tokens().create('away');
    const send = () => service.post('{}', { authorization: `Bearer ${token}` });
    expect(await send()).toMatchObject({ status: 400 });
    await tokens().revoke([id]);
    service.proxy.cut();
    for (let i = 0; i < 4; i++) {
      expect(await send()).toMatchObject({ status: 400 });
      await advance(1000);
    }
    await advance(1);
    expect(await send()).toMatchObject({ status: 503, body: { error: 50300 } });
    service.proxy.restore();
    expect(await send()).toMatchObject({ status: 401, body: { error: 40101 } });
  });

  it('does not make another token on the same connection valid', async () => {
    const right = service.token;
    const socket = await openConnection(service.port);
    socket.write(
      [right, right, generateAccessToken(), `${right}x`, right]
        .map((token) => plantRequest(token, PLANT))
        .join(''),
    );
    const responses = await readResponses(socket, 5);
    socket.destroy();
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 401, 401, 200]);
  });

  it('counts wrong tokens of every kind for the address that the proxy saw: too many get 429', async () => {
    await advance(1000);
    const wrong = [
      generateAccessToken(),
      'plantstore_0',
      'a, b',
      await issuer.sign({ aud: 'other' }),
      await issuer.sign({}, { kid: 'unknown' }),
    ];
    for (const [status, error] of [
      [401, 40101],
      [429, 42900],
    ]) {
      for (const [i, token] of wrong.entries()) {
        expect(await post(token, `198.51.100.${i}, 192.0.2.2`)).toMatchObject({
          status,
          body: { error },
        });
      }
    }
    expect(await statusOf(wrong[0]!, '192.0.2.3')).toBe(401);
  });

  it('counts for a minute, which begins with the first wrong token; Retry-After has the seconds that are left', async () => {
    await exhaust('192.0.2.4');
    for (const [milliseconds, seconds] of [
      [0, '60'],
      [30_001, '30'],
      [29_998, '1'],
    ] as const) {
      await advance(milliseconds);
      const { status, headers } = await post('wrong', '192.0.2.4');
      expect([status, headers.get('retry-after')]).toEqual([429, seconds]);
    }
    await advance(2);
    expect(await statusOf('wrong', '192.0.2.4')).toBe(401);
  });

  it('never refuses a valid token that it has not seen before, whatever its address sends, also after a restart', async () => {
    const address = '192.0.2.5';
    await exhaust(address);
    const { token } = await tokens().create('new');
    expect(await statusOf(token, address)).toBe(200);
    expect(await statusOf(await issuer.sign(), address)).toBe(200);
    await service.restart();
    const guesses = Array.from({ length: 10 * LIMIT }, () =>
      statusOf(generateAccessToken(), address),
    );
    expect(await statusOf(token, address)).toBe(200);
    expect(await statusOf(await issuer.sign(), address)).toBe(200);
    const statuses = await Promise.all(guesses);
    expect(statuses.filter((status) => status === 401)).toHaveLength(LIMIT);
    expect(statuses.filter((status) => status === 429)).toHaveLength(9 * LIMIT);
  });

  it('does not count tokens that could not be checked because the database was away', async () => {
    const guess = () => post(generateAccessToken(), '192.0.2.6');
    service.proxy.cut();
    for (let i = 0; i < LIMIT + 1; i++)
      expect(await guess()).toMatchObject({ body: { error: 50300 } });
    service.proxy.restore();
    await exhaust('192.0.2.6');
    expect(await guess()).toMatchObject({ status: 429 });
  });

  it('takes one connection to the database for all unknown tokens together', async () => {
    const busy = async () => metricIn(await metrics(), 'plant_store_database_connections', 'busy');
    await until(async () => (await busy()) === 0);
    service.proxy.freeze();
    const guesses = Array.from({ length: 300 }, () => post(generateAccessToken(), '192.0.2.8'));
    await until(async () => (await service.metric('plant_store_token_lookups')) === 300);
    const connections = await busy();
    service.proxy.restore();
    await Promise.all(guesses);
    expect(connections).toBe(1);
  });

  it('counts a wrong token whose client has gone meanwhile', async () => {
    const before = await checks('invalid');
    service.proxy.freeze();
    const client = await openConnection(service.port);
    client.write(plantRequest(generateAccessToken(), PLANT));
    await until(async () => (await service.metric('plant_store_token_lookups')) === 1);
    client.destroy();
    await until(async () => (await metrics()).includes('status="499"'));
    service.proxy.restore();
    await until(async () => (await checks('invalid')) === before + 1);
  });

  it('is counted by its outcome, for the metrics', async () => {
    const outcomes = ['valid', 'cached', 'invalid', 'limited', 'unchecked'];
    const counts = () => Promise.all(outcomes.map(checks));
    const before = await counts();
    const { token } = await tokens().create('counted');
    for (let i = 0; i < 3; i++) await post(token);
    await exhaust('192.0.2.7');
    await post('wrong', '192.0.2.7');
    service.proxy.cut();
    await post(generateAccessToken(), '192.0.2.7');
    service.proxy.restore();
    const after = await counts();
    expect(after.map((count, i) => count - before[i]!)).toEqual([1, 2, LIMIT, 1, 1]);
  });

  describe('stores the last use of a token', () => {
    const lastUse = async (id: string) =>
      (await tokens().list()).find((info) => info.id === id)!.lastUsedAt;

    it('once a minute, and fails no request if it cannot, which it logs', async () => {
      const { token, id } = await tokens().create('used');
      await service.database.query(
        `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
         CREATE TRIGGER refuse BEFORE UPDATE ON access_tokens EXECUTE FUNCTION refuse()`,
      );
      const warn = jest.spyOn(service.app.get<Logger>(PINO_LOGGER), 'warn');
      expect(await post(token)).toMatchObject({ status: 200 });
      await until(() => warn.mock.calls.length > 0);
      expect(warn).toHaveBeenCalledWith(
        expect.stringMatching(/^The last use of a token could not be written: .*refused/),
      );
      await advance(59_999);
      expect(await post(token)).toMatchObject({ status: 200 });
      expect(warn).toHaveBeenCalledTimes(1);
      await service.database.query('DROP FUNCTION refuse CASCADE');
      expect(await lastUse(id)).toBeNull();
      await advance(4001);
      expect(await post(token)).toMatchObject({ status: 200 });
      await until(async () => (await lastUse(id)) !== null);
      expect(warn).toHaveBeenCalledTimes(1);
    });

    it('once a minute for all processes together', async () => {
      const { id } = await tokens().create('shared');
      const usedAgo = async (seconds: number) => {
        await service.database.query(
          `UPDATE access_tokens SET last_used_at = now() - interval '${seconds} seconds'`,
        );
        const before = await lastUse(id);
        await tokens().recordUse(id);
        return (await lastUse(id))!.getTime() > before!.getTime();
      };
      expect([await usedAgo(50), await usedAgo(61)]).toEqual([false, true]);
    });
  });
});

it('the address of a wrong token is not what the client writes, without a trusted proxy', async () => {
  const service = await startService({ AUTH_FAILURES_PER_MINUTE: '1' });
  const guessFrom = (address: string) =>
    service.post(PLANT, { authorization: 'Bearer wrong', 'x-forwarded-for': address });
  try {
    expect(await guessFrom('192.0.2.1')).toMatchObject({ status: 401 });
    expect(await guessFrom('192.0.2.2')).toMatchObject({ status: 429 });
  } finally {
    await service.close();
  }
});
