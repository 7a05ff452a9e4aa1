import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { startService, type TestResponse, type TestService } from '../setup/service/service.js';

const PLANT = '{"id":1,"name":"a"}';

describe('a bearer token', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  afterAll(() => service.close());

  /** Sends a plant with this Authorization header, or without one. */
  const postWith = (authorization: string | undefined, path = '/plants', body = PLANT) =>
    service.request(path, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(authorization === undefined ? {} : { authorization }),
      },
      body,
    });

  async function expectRefused(response: TestResponse, error: number, challenge: string) {
    expect(response).toMatchObject({ status: 401, body: { error, message: expect.any(String) } });
    expect(response.headers.get('www-authenticate')).toBe(challenge);
    expect(await service.storedPlants()).toEqual([]);
  }
  const expectMissing = (response: TestResponse) =>
    expectRefused(response, 40100, 'Bearer realm="plant-store"');
  const expectInvalid = (response: TestResponse) =>
    expectRefused(response, 40101, 'Bearer realm="plant-store", error="invalid_token"');

  it.each([
    ['no header', undefined],
    ['an empty header', ''],
    ['another scheme', 'Basic dXNlcjpwYXNzd29yZA=='],
    ['the scheme alone', 'Bearer'],
    ['the scheme and spaces', 'Bearer   '],
    ['a scheme that only begins with Bearer', 'Bearerx abc'],
  ])('is missing from %s: 40100', async (_kind, header) => {
    await expectMissing(await postWith(header));
  });

  it('is missing if only the query has a token', async () => {
    await expectMissing(await postWith(undefined, `/plants?access_token=${service.token}`));
  });

  it('is missing if only the body has a token', async () => {
    const body = `{"id":1,"name":"a","access_token":"${service.token}"}`;
    await expectMissing(await postWith(undefined, '/plants', body));
  });

  it.each([
    ['was never made', generateAccessToken()],
    ['has a wrong checksum', `plantstore_${'0'.repeat(49)}`],
    ['has another form', 'abc'],
    ['has characters that no token has', '"><script>\'; DROP TABLE'],
    ['is very long', 'x'.repeat(8000)],
    ['is two tokens', 'abc abc'],
    ['is a name of Object.prototype', '__proto__'],
  ])('that %s is 40101', async (_kind, token) => {
    await expectInvalid(await postWith(`Bearer ${token}`));
  });

  it('that is followed by other characters is 40101', async () => {
    await expectInvalid(await postWith(`Bearer ${service.token}x`));
    await expectInvalid(await postWith(`Bearer ${service.token} x`));
    await expectInvalid(await postWith(`Bearer ${service.token}, Bearer ${service.token}`));
  });

  it('that is not valid is 40101, even with a valid token in the query', async () => {
    await expectInvalid(await postWith('Bearer abc', `/plants?access_token=${service.token}`));
  });

  it('gets the same response whether it is unknown, expired or revoked', async () => {
    const tokens = service.app.get(AccessTokensService);
    const expired = await tokens.create('expired');
    const revoked = await tokens.create('revoked');
    await service.database.query(
      "UPDATE access_tokens SET expires_at = now() - interval '1 second' WHERE name = 'expired'",
    );
    await service.database.query(
      "UPDATE access_tokens SET revoked_at = now() WHERE name = 'revoked'",
    );
    const responses = [
      await postWith(`Bearer ${generateAccessToken()}`),
      await postWith(`Bearer ${expired}`),
      await postWith(`Bearer ${revoked}`),
    ];
    for (const response of responses) {
      await expectInvalid(response);
      expect(response.body).toEqual(responses[0]!.body);
    }
  });

  it.each([
    ['bearer', ' '],
    ['BEARER', ' '],
    ['Bearer', '     '],
  ])('is accepted with the scheme %s and the space %j', async (scheme, space) => {
    expect((await postWith(`${scheme}${space}${service.token}`)).status).toBe(200);
    await service.database.query('TRUNCATE plants');
  });

  it.each(['/plants?access_token=x', '/plants?access_token=x&access_token=y'])(
    'is accepted with the target %s',
    async (path) => {
      expect((await postWith(`Bearer ${service.token}`, path)).status).toBe(200);
      await service.database.query('TRUNCATE plants');
    },
  );

  it('is stored as its hash only', async () => {
    const rows = await service.database.query(
      'SELECT access_tokens::text AS row FROM access_tokens',
    );
    expect(JSON.stringify(rows)).not.toContain(service.token);
    expect(JSON.stringify(rows)).not.toContain(Buffer.from(service.token).toString('hex'));
  });
});
