import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { METRICS_SETTING, METRICS_TOKEN } from '../setup/service/metrics.js';
import { startService, type TestResponse, type TestService } from '../setup/service/service.js';

const PLANT = '{"id":1,"name":"a"}';

let service: TestService;

beforeAll(async () => {
  service = await startService(METRICS_SETTING);
});
beforeEach(() => service.database.query('TRUNCATE plants'));
afterAll(() => service.close());

/** Sends a request with this Authorization header, or without one. In all texts, TOKEN stands for a valid token. */
function postWith(
  authorization: string | undefined,
  ...[path = '/plants', body = PLANT]: string[]
): Promise<TestResponse> {
  const withToken = (text: string) => text.replaceAll('TOKEN', service.token);
  return service.request(withToken(path), {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      ...(authorization === undefined ? {} : { authorization: withToken(authorization) }),
    },
    body: withToken(body),
  });
}

async function expectRefused(response: TestResponse, error: number, challenge: string) {
  expect(response).toMatchObject({ status: 401, body: { error, message: expect.any(String) } });
  expect(response.headers.get('www-authenticate')).toBe(challenge);
  expect(await service.storedPlants()).toEqual([]);
}
const expectInvalid = (response: TestResponse) =>
  expectRefused(response, 40101, 'Bearer realm="plant-store", error="invalid_token"');

describe('a bearer token', () => {
  /** Past the guard, and refused for its body. */
  const ACCEPTED = { body: { error: 40005 } };

  it.each(['Bearer TOKEN', 'bearer TOKEN', 'BEARER   TOKEN'])(
    'is accepted in the header %j',
    async (header) => {
      expect(await postWith(header, '/plants?access_token=x', '{}')).toMatchObject(ACCEPTED);
    },
  );

  it('in the header is not disturbed by an access_token in the body', async () => {
    const body = '{"id":1,"name":"a","access_token":"x"}';
    expect(await postWith('Bearer TOKEN', '/plants', body)).toMatchObject({ status: 200 });
  });

  it.each<[string, string | undefined, ...string[]]>([
    ['there is no header', undefined],
    ['there is only one in the query', undefined, '/plants?access_token=TOKEN'],
    ['there is only one in the body', undefined, '/plants', '{"id":1,"access_token":"TOKEN"}'],
    ['the header has the scheme only', 'Bearer '],
    ['the header has the token only', 'TOKEN'],
    ['the header has another scheme', 'XBearer TOKEN'],
    ['there is no space after the scheme', 'BearerTOKEN'],
    ['there is a tab after the scheme', 'Bearer\tTOKEN'],
  ])('is missing if %s: 40100', async (_reason, header, ...rest) => {
    const response = await postWith(header, ...rest);
    await expectRefused(response, 40100, 'Bearer realm="plant-store"');
  });

  it.each<[string, string, ...string[]]>([
    ['has the form of no token', 'Bearer abc'],
    ['has another character', 'Bearer TOKENx'],
    ['comes before other text', 'Bearer TOKEN x'],
    ['comes after other text', 'Bearer x TOKEN'],
    ['is in a list', 'Bearer TOKEN, Bearer TOKEN'],
    ['is not the one in the query', 'Bearer abc', '/plants?access_token=TOKEN'],
  ])('is not valid if it %s: 40101', async (_reason, header, ...rest) => {
    await expectInvalid(await postWith(header, ...rest));
  });

  it('gets the same response, 40101, whether it is unknown, expired or revoked', async () => {
    const tokens = service.app.get(AccessTokensService);
    const { token: expired } = await tokens.create('expired');
    const { token: revoked } = await tokens.create('revoked');
    await service.database.query(
      "UPDATE access_tokens SET expires_at = now() - interval '1 second' WHERE name = 'expired'",
    );
    await service.database.query(
      "UPDATE access_tokens SET revoked_at = now() WHERE name = 'revoked'",
    );
    const bodies: unknown[] = [];
    for (const token of [generateAccessToken(), expired, revoked]) {
      const response = await postWith(`Bearer ${token}`);
      await expectInvalid(response);
      bodies.push(response.body);
    }
    expect(bodies).toEqual(Array(3).fill(bodies[0]));
  });

  it('that an earlier version made is accepted', async () => {
    const token = 'plantstore_0123456789abcdefghijklmnopqrstuvwxyzABCDEFG07cCaD';
    await service.database.query(
      `INSERT INTO access_tokens (id, name, hash) VALUES ('1', 'earlier', sha256('${token}'))`,
    );
    expect(await postWith(`Bearer ${token}`, '/plants', '{}')).toMatchObject(ACCEPTED);
  });
});

describe('the metrics token', () => {
  const statusOfMetrics = async (token: string, of = service) => {
    const headers = { authorization: `Bearer ${token}` };
    return (await of.request('/metrics', { headers })).status;
  };

  it('opens /metrics, beside other tokens, and nothing else', async () => {
    expect(await statusOfMetrics(METRICS_TOKEN)).toBe(200);
    expect(await statusOfMetrics(service.token)).toBe(200);
    await expectInvalid(await postWith(`Bearer ${METRICS_TOKEN}`));
  });

  it('may be set by a hash in capitals', async () => {
    const hash = METRICS_SETTING.METRICS_TOKEN_SHA256.toUpperCase();
    const other = await startService({ METRICS_TOKEN_SHA256: hash });
    expect(await statusOfMetrics(METRICS_TOKEN, other)).toBe(200);
    await other.close();
  });
});
