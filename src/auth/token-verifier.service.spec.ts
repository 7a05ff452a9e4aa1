import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { AUDIENCE, startIssuer, type Issuer } from '../../test/setup/http/issuer.js';
import { settled } from '../../test/setup/time/settled.js';
import { openVerifier, type TestVerifier } from '../../test/tokens/token-verifier.js';
import { ErrorCode } from '../errors/error-codes.js';

const ADDRESS = '192.0.2.1';
const LIMIT = 3;

const VALID = expect.objectContaining({ name: 'gardener' });
const TOO_MANY = { code: ErrorCode.tooManyAttempts };
const UNAVAILABLE = { code: ErrorCode.issuerUnavailable };

describe('the verifier of tokens', () => {
  let issuer: Issuer;
  let opened: TestVerifier;
  const advance = holdClock();

  const open = (env: Record<string, string> = {}) => {
    opened = openVerifier({
      OIDC_ISSUER: issuer.url,
      OIDC_AUDIENCE: AUDIENCE,
      AUTH_FAILURES_PER_MINUTE: String(LIMIT),
      ...env,
    });
  };
  beforeEach(async () => {
    issuer = await startIssuer('ES256');
    open();
  });
  afterEach(() => issuer.close());

  const verify = (token: string) => opened.verifier.verify(token, ADDRESS);
  const findCached = (token: string) => opened.verifier.findCached(token);

  it('finds the caller of a valid token, and none for another', async () => {
    expect(await verify(await issuer.sign())).toEqual(VALID);
    expect(await verify(await issuer.sign({ aud: 'other' }))).toBeUndefined();
    expect(await verify('of an unknown form')).toBeUndefined();
  });

  it('finds no caller for a JWT without an identity provider', async () => {
    open({ OIDC_ISSUER: '', OIDC_AUDIENCE: '' });
    expect(await verify(await issuer.sign())).toBeUndefined();
    expect(issuer.requests).toBe(0);
  });

  it('stores no use of a JWT', async () => {
    const token = await issuer.sign();
    await verify(token);
    findCached(token);
    await settled();
    expect(opened.log).toEqual([]);
  });

  it('counts tokens by outcome', async () => {
    const token = await issuer.sign();
    issuer.setDown(true);
    await expect(verify(token)).rejects.toMatchObject(UNAVAILABLE);
    issuer.setDown(false);
    await advance(1000);
    await verify(token);
    for (let i = 0; i < 2; i++) findCached(token);
    findCached('another');
    for (let i = 0; i < LIMIT; i++) await verify('wrong');
    await expect(verify('wrong')).rejects.toMatchObject(TOO_MANY);
    const expected = { unjudged: 1, valid: 1, remembered: 2, invalid: LIMIT, limited: 1 };
    expect(await opened.outcomes()).toEqual(expected);
  });

  describe('uses the verdict that a token is valid', () => {
    it('for this token only', async () => {
      const token = await issuer.sign();
      expect(findCached(token)).toBeUndefined();
      await verify(token);
      expect(findCached(token)).toEqual(VALID);
      expect(findCached(await issuer.sign())).toBeUndefined();
      expect(findCached(token.toLowerCase())).toBeUndefined();
      expect(findCached(token.slice(0, -1))).toBeUndefined();
    });

    it('from the beginning of its lookup, and not from its end', async () => {
      const token = await issuer.sign();
      const release = issuer.hold();
      const verdict = verify(token);
      await advance(1000);
      release();
      await verdict;
      expect(findCached(token)).toEqual(VALID);
      await advance(3000);
      expect(findCached(token)).toBeUndefined();
    });

    it('and looks the token up again after two seconds, in the background', async () => {
      const token = await issuer.sign();
      await verify(token);
      await advance(1999);
      findCached(token);
      expect(await opened.lookUps()).toBe(0);
      await advance(1);
      expect(findCached(token)).toEqual(VALID);
      expect(await opened.lookUps()).toBe(1);
      // Joins the lookup in flight.
      await verify(token);
      await advance(3999);
      expect(findCached(token)).toEqual(VALID);
    });
  });

  describe('looks a token up', () => {
    it('once, for all requests that wait for its verdict', async () => {
      open({ MAX_PENDING_REQUESTS: '1' });
      const token = await issuer.sign();
      const verdicts = Array.from({ length: LIMIT + 1 }, () => verify(token));
      expect(await opened.lookUps()).toBe(1);
      expect(await Promise.all(verdicts)).toEqual(Array(LIMIT + 1).fill(VALID));
      expect(await opened.lookUps()).toBe(0);
    });

    it('unless as many lookups are in flight as requests may be', async () => {
      open({ MAX_PENDING_REQUESTS: '2' });
      const tokens = await Promise.all(Array.from({ length: 3 }, () => issuer.sign()));
      const verdicts = tokens.map(verify);
      expect(await opened.lookUps()).toBe(2);
      expect(await Promise.allSettled(verdicts)).toMatchObject([
        { value: VALID },
        { value: VALID },
        { reason: { code: ErrorCode.overloaded } },
      ]);
      expect(await verify(tokens[2]!)).toEqual(VALID);
    });

    it('of one kind while the issuer, which checks those of another kind, hangs', async () => {
      open({ MAX_PENDING_REQUESTS: '1' });
      const token = await issuer.sign();
      const release = issuer.hold();
      const verdict = verify(token);
      expect(await verify('of another kind')).toBeUndefined();
      expect(await opened.lookUps()).toBe(1);
      release();
      expect(await verdict).toEqual(VALID);
    });
  });
});
