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

/** The requests whose client has gone. */
const GONE =
  'plant_store_http_request_duration_seconds_count{route="/plants",method="POST",status="499",operation="createPlant"}';

describe('the check of tokens', () => {
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
    'a %s token works for at most four seconds longer',
    async (how) => {
      const { token, id } = await tokens().create(how);
      expect(await post(token)).toMatchObject({ status: 200 });
      if (how === 'revoked') await tokens().revoke([id]);
      else await tokens().rotate(how, 0);
      await advance(4001);
      expect(await post(token)).toMatchObject({ status: 401, body: { error: 40101 } });
    },
  );

  it('during an outage, a cached token works for four seconds, and then gets 503, not 401', async () => {
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

  it('a valid token does not make another one on its connection valid', async () => {
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

  it('wrong tokens of every kind count together, by the address that the proxy saw', async () => {
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

  it('wrong tokens count for a minute, which begins with the first one; Retry-After has the seconds that are left', async () => {
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

  it('a valid token that is not cached is never refused, also after a restart', async () => {
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

  it('tokens that could not be checked because the database was away do not count', async () => {
    const guess = () => post(generateAccessToken(), '192.0.2.6');
    service.proxy.cut();
    for (let i = 0; i < LIMIT + 1; i++)
      expect(await guess()).toMatchObject({ body: { error: 50300 } });
    service.proxy.restore();
    await exhaust('192.0.2.6');
    expect(await guess()).toMatchObject({ status: 429 });
  });

  it('all unknown tokens together take one connection to the database', async () => {
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

  it('a wrong token whose client has gone counts, too', async () => {
    const gone = async () => metricIn(await metrics(), GONE) ?? 0;
    const [invalidBefore, goneBefore] = [await checks('invalid'), await gone()];
    service.proxy.freeze();
    const client = await openConnection(service.port);
    client.write(plantRequest(generateAccessToken(), PLANT));
    await until(async () => (await service.metric('plant_store_token_lookups')) === 1);
    client.destroy();
    await until(async () => (await gone()) === goneBefore + 1);
    service.proxy.restore();
    await until(async () => (await checks('invalid')) === invalidBefore + 1);
  });

  it('the metrics count the checks by their outcome', async () => {
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

  describe('the last use of a token', () => {
    const lastUse = async (id: string) =>
      (await tokens().list()).find((info) => info.id === id)!.lastUsedAt;

    it('is stored once a minute; if it cannot be, the log says so, and no request fails', async () => {
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

    it('is stored once a minute by all processes together', async () => {
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

it('without a trusted proxy, X-Forwarded-For is ignored', async () => {
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
