import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { UnitDatabase } from '../../test/setup/database/unit-database.js';
import { AUDIENCE, startIssuer, type Issuer } from '../../test/setup/http/issuer.js';
import { useResources } from '../../test/setup/jest/resources.js';
import { holdClock } from '../../test/setup/time/clock.js';
import { openVerifier } from '../../test/tokens/token-verifier.js';
import { ErrorCode } from '../errors/error-codes.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import type { TokenVerifierService } from './token-verifier.service.js';

const LIMIT = 3;
const DATABASE_TIMEOUT_MS = 5000;
const [HERE, THERE] = ['192.0.2.1', '192.0.2.2'];

const VALID = expect.objectContaining({ name: 'gardener' });
const TOO_MANY = { code: ErrorCode.tooManyAttempts };
const OVERLOADED = { code: ErrorCode.overloaded };

describe('the wrong tokens of an address', () => {
  let issuer: Issuer;
  let verifier: TokenVerifierService;
  const advance = holdClock();

  const open = (limit: number) => {
    ({ verifier } = openVerifier({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_FAILURES_PER_MINUTE: String(limit),
      DATABASE_TIMEOUT_MS: String(DATABASE_TIMEOUT_MS),
    }));
  };
  beforeEach(async () => {
    issuer = await startIssuer('ES256');
    open(LIMIT);
  });
  afterEach(() => issuer.close());

  const verify = (token: string, address = HERE) => verifier.verify(token, address);

  /** A token of the issuer that is not for this service. */
  const signWrong = () => issuer.sign({ aud: 'other' });

  /** Sends wrong tokens until the first is refused. */
  async function countAttemptsLeft(): Promise<number> {
    for (let count = 0; ; count++) {
      try {
        await verify(await signWrong());
      } catch (error) {
        expect(error).toMatchObject(TOO_MANY);
        return count;
      }
    }
  }

  it('are limited for each kind of token by itself', async () => {
    for (let i = 0; i < LIMIT; i++) expect(await verify(`wrong ${i}`)).toBeUndefined();
    await expect(verify('wrong')).rejects.toMatchObject(TOO_MANY);
    expect(await verify('wrong', THERE)).toBeUndefined();
    expect(await countAttemptsLeft()).toBe(LIMIT);
  });

  it('are limited even if all are sent at once', async () => {
    const tokens = await Promise.all(Array.from({ length: 5 * LIMIT }, signWrong));
    const results = await Promise.allSettled(tokens.map((token) => verify(token)));
    const refused = results.filter(({ status }) => status === 'rejected');
    expect(refused).toMatchObject(Array(4 * LIMIT).fill({ reason: TOO_MANY }));
  });

  it('do not lock out a token that was valid', async () => {
    const token = await issuer.sign();
    await verify(token);
    await countAttemptsLeft();
    await advance(4000);
    expect(await verify(token)).toEqual(VALID);
    await expect(verify(await issuer.sign())).rejects.toMatchObject(TOO_MANY);
  });

  it('count again, without a lookup, if one is sent again', async () => {
    const token = await issuer.sign({}, { kid: 'unknown' });
    await verify(await issuer.sign());
    await advance(1000);
    expect(await verify(token)).toBeUndefined();
    const before = issuer.requests;
    await advance(1000);
    expect(await verify(token)).toBeUndefined();
    expect(issuer.requests).toBe(before);
    expect(await countAttemptsLeft()).toBe(LIMIT - 2);
  });

  it('count as one if many requests send the same at once', async () => {
    const token = await signWrong();
    const verdicts = await Promise.all(Array.from({ length: 5 }, () => verify(token)));
    expect(new Set(verdicts)).toEqual(new Set([undefined]));
    expect(await countAttemptsLeft()).toBe(LIMIT - 1);
  });

  it('do not refuse a request that waited for one, if its token was found valid meanwhile', async () => {
    open(1);
    const [known, token] = [await issuer.sign(), await issuer.sign()];
    const wrong = await issuer.sign({}, { kid: 'unknown' });
    await verify(known);
    await advance(1000);
    const release = issuer.hold();
    const verdicts = [verify(wrong), verify(token)];
    expect(await verify(token, THERE)).toEqual(VALID);
    release();
    expect(await Promise.all(verdicts)).toEqual([undefined, VALID]);
  });

  it.each([
    ['go on waiting before', DATABASE_TIMEOUT_MS - 1, { status: 'fulfilled', value: VALID }],
    ['are refused after', DATABASE_TIMEOUT_MS, { status: 'rejected', reason: OVERLOADED }],
  ])('lookups that wait for others %s the timeout of the database', async (_, wait, last) => {
    open(1);
    const tokens = await Promise.all(Array.from({ length: 3 }, () => issuer.sign()));
    const release = issuer.hold();
    const verdicts = Promise.allSettled(tokens.map((token) => verify(token)));
    await advance(wait);
    release();
    // The end of the first lookup lets the second begin. The third has to wait again.
    expect(await verdicts).toMatchObject([{ value: VALID }, { value: VALID }, last]);
  });
});

describe('the wrong access tokens of an address', () => {
  const resources = useResources();
  const database = new UnitDatabase();

  it('are limited by themselves, and not together with the tokens of an identity provider', async () => {
    const issuer = await startIssuer('ES256');
    resources.defer(() => issuer.close());
    const dataSource = await database.openWithSchema([AccessTokenEntity]);
    const { verifier } = openVerifier(
      {
        OIDC_ISSUER: issuer.url,
        OIDC_AUDIENCE: AUDIENCE,
        AUTH_FAILURES_PER_MINUTE: String(LIMIT),
      },
      new AccessTokensService(dataSource.getRepository(AccessTokenEntity)),
    );
    const verify = (token: string) => verifier.verify(token, HERE);
    for (let i = 0; i < LIMIT; i++) expect(await verify(generateAccessToken())).toBeUndefined();
    await expect(verify(generateAccessToken())).rejects.toMatchObject(TOO_MANY);
    expect(await verify(await issuer.sign())).toEqual(VALID);
    for (let i = 0; i < LIMIT; i++) {
      expect(await verify(await issuer.sign({ aud: 'other' }))).toBeUndefined();
    }
    await expect(verify(await issuer.sign({ aud: 'other' }))).rejects.toMatchObject(TOO_MANY);
  });
});
