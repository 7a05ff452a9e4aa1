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

  // The forms of the header, and a query beside it, are those of bearer.guard.spec.ts.
  it.each([
    ['header, query and body have none', '/plants', PLANT],
    ['only the query has one', '/plants?access_token=TOKEN', PLANT],
    ['only the body has one', '/plants', '{"id":1,"name":"a","access_token":"TOKEN"}'],
  ])('is missing if %s: 40100', async (_kind, path, body) => {
    const withToken = (text: string) => text.replace('TOKEN', service.token);
    await expectMissing(await postWith(undefined, withToken(path), withToken(body)));
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
});
