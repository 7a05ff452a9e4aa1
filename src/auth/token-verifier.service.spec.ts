import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { UnitDatabase, type DataSource } from '../../test/setup/database/unit-database.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { AUDIENCE, startIssuer, type Issuer } from '../../test/setup/http/issuer.js';
import { holdClock } from '../../test/setup/time/clock.js';
import { settled } from '../../test/setup/time/settled.js';
import { until } from '../../test/setup/time/until.js';
import { openVerifier, type TestVerifier } from '../../test/tokens/token-verifier.js';
import { overloaded, tokenInvalid, tooManyAttempts } from '../errors/errors.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';

const ADDRESS = '192.0.2.1';
const HOUR_MS = 3_600_000;
const POOL_SIZE = 4;

const OVERLOADED = { status: 'rejected', reason: { code: overloaded.code } };
const INVALID = { code: tokenInvalid.code };
const VALID = { status: 'fulfilled', value: { name: 'shed' } };

describe('the verifier of tokens', () => {
  const database = new UnitDatabase('block');
  let dataSource: DataSource;
  let tokens: AccessTokensService;
  let opened: TestVerifier;
  let token: string;
  let id: string;
  const advance = holdClock();

  const open = (env: Record<string, string> = {}) => {
    opened = openVerifier({ DATABASE_POOL_SIZE: String(POOL_SIZE), ...env }, tokens);
  };
  beforeAll(async () => {
    dataSource = await database.openWithSchema(
      [AccessTokenEntity],
      patientConfig({ url: database.url, poolSize: POOL_SIZE }),
    );
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
  });
  beforeEach(async () => {
    await database.query('TRUNCATE access_tokens');
    open();
    ({ token, id } = await tokens.create('shed'));
  });

  const verify = (text: string) => opened.verifier.verify(text);
  const findCached = (text: string) => opened.verifier.findCached(text);

  /** Holds the lookups of a test, until it calls the function that this returns. */
  async function holdLookUps(): Promise<() => Promise<void>> {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: held, resolve } = Promise.withResolvers<void>();
    const done = dataSource.transaction(async (manager) => {
      await manager.query('LOCK TABLE access_tokens');
      resolve();
      await released;
    });
    await held;
    return () => {
      release();
      return done;
    };
  }

  /** Runs `action` while no lookup can succeed. */
  async function withoutTable(action: () => Promise<void>): Promise<void> {
    await database.query('ALTER TABLE access_tokens RENAME TO elsewhere');
    await action().finally(() => database.query('ALTER TABLE elsewhere RENAME TO access_tokens'));
  }

  const countWaiting = async () => {
    const rows = await database.query<{ count: string }>(
      "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return Number(rows[0]!.count);
  };

  describe('caches that a token is valid', () => {
    it('for this token only', async () => {
      expect(findCached(token)).toBeUndefined();
      expect(await verify(token)).toMatchObject({ name: 'shed' });
      expect(findCached(token)).toMatchObject({ name: 'shed' });
      expect(findCached((await tokens.create('shed')).token)).toBeUndefined();
      expect(findCached(token.toLowerCase())).toBeUndefined();
    });

    it('for four seconds, which begin with its lookup', async () => {
      const release = await holdLookUps();
      const caller = verify(token);
      await advance(1000);
      await release();
      await caller;
      await advance(2998);
      expect(findCached(token)).toMatchObject({ name: 'shed' });
      await advance(3);
      expect(findCached(token)).toBeUndefined();
    });

    it('until it expires', async () => {
      const { token: short } = await tokens.create('short', HOUR_MS);
      const [info] = await tokens.findLive('short');
      await advance.changeDate(info!.expiresAt!.getTime() - Date.now() - 1000);
      await verify(short);
      await advance(998);
      expect(findCached(short)).toMatchObject({ name: 'short' });
      await advance(3);
      expect(findCached(short)).toBeUndefined();
    });

    it('unless its lookup failed', async () => {
      await withoutTable(() => expect(verify(token)).rejects.toBeInstanceOf(Error));
      expect(await verify(token)).toMatchObject({ name: 'shed' });
    });
  });

  it('caches for four seconds that a token is wrong', async () => {
    const wrong = generateAccessToken();
    await expect(verify(wrong)).rejects.toMatchObject(INVALID);
    await withoutTable(async () => {
      await advance(3999);
      await expect(verify(wrong)).rejects.toMatchObject(INVALID);
      await advance(2);
      await expect(verify(wrong)).rejects.toBeInstanceOf(Error);
    });
  });

  describe('looks tokens up', () => {
    /** Starts a lookup of each of these tokens, while all lookups wait. */
    const lookUpAll = async (texts: readonly string[]) => {
      const release = await holdLookUps();
      const results = Promise.allSettled(texts.map(verify));
      await until(async () => (await countWaiting()) > 0);
      return { results, release };
    };

    it('once, for all requests that wait', async () => {
      const { results, release } = await lookUpAll([token, token, token]);
      expect(await opened.lookups()).toBe(1);
      await release();
      expect(await results).toMatchObject([VALID, VALID, VALID]);
      expect(await opened.lookups()).toBe(0);
    });

    it('with one connection to the database, whatever their number', async () => {
      const guesses = Array.from({ length: 100 }, generateAccessToken);
      const { results, release } = await lookUpAll([...guesses, token]);
      expect(await countWaiting()).toBe(1);
      expect(await opened.lookups()).toBe(101);
      await release();
      expect((await results).at(-1)).toMatchObject(VALID);
    });

    it('unless as many wait as requests may', async () => {
      open({ MAX_PENDING_REQUESTS: '1' });
      const { results, release } = await lookUpAll([token]);
      const others = Promise.allSettled([generateAccessToken(), generateAccessToken()].map(verify));
      await release();
      expect(await results).toMatchObject([VALID]);
      expect(await others).toMatchObject([{ reason: INVALID }, OVERLOADED]);
    });

    it('unless they have waited for longer than a statement may', async () => {
      open({ DATABASE_TIMEOUT_MS: '5000' });
      const { results, release } = await lookUpAll([token]);
      const other = Promise.allSettled([verify(generateAccessToken())]);
      await advance(5001);
      await release();
      expect(await results).toMatchObject([VALID]);
      expect(await other).toMatchObject([OVERLOADED]);
    });
  });

  describe('stores the last use of a token', () => {
    const lastUse = async () => (await tokens.list())[0]!.lastUsedAt;
    const useAgo = (seconds: number | null) =>
      database.query(`UPDATE access_tokens SET last_used_at = now() - $1 * interval '1 second'`, [
        seconds,
      ]);

    it('at most once a minute, whatever the number of processes', async () => {
      await useAgo(50);
      const recent = await lastUse();
      await tokens.recordUse(id);
      expect(await lastUse()).toEqual(recent);
      await useAgo(61);
      await tokens.recordUse(id);
      expect((await lastUse())!.getTime()).toBeGreaterThan(recent!.getTime());
    });

    it.each([
      ['also if the date is set back', -HOUR_MS],
      ['also if the date is set ahead', HOUR_MS],
      ['when it is looked up again', 0],
    ])('a minute later, %s', async (_how, change) => {
      await verify(token);
      await until(async () => (await lastUse()) !== null);
      await useAgo(null);
      await advance.changeDate(change);
      await advance(59_999);
      await verify(token);
      await settled();
      expect(await lastUse()).toBeNull();
      await advance(4001);
      await verify(token);
      await until(async () => (await lastUse()) !== null);
      expect(opened.log).toEqual([]);
    });

    it('only if it is valid', async () => {
      for (const wrong of [generateAccessToken(), `${token}x`])
        await expect(verify(wrong)).rejects.toMatchObject(INVALID);
      await settled();
      expect(await lastUse()).toBeNull();
    });
  });

  it('counts tokens by outcome', async () => {
    const wrong = generateAccessToken();
    await verify(token);
    findCached(token);
    findCached(token);
    for (const text of [wrong, 'malformed'])
      await expect(verify(text)).rejects.toMatchObject(INVALID);
    open({ AUTH_FAILURES_PER_MINUTE: '2' });
    for (const code of [tokenInvalid.code, tokenInvalid.code, tooManyAttempts.code]) {
      expect(opened.verifier.countInvalid(ADDRESS, tokenInvalid())).toMatchObject({ code });
    }
    await verify(token);
    findCached(token);
    findCached('malformed');
    await withoutTable(() => expect(verify(wrong)).rejects.toBeInstanceOf(Error));
    const expected = { valid: 1, cached: 1, invalid: 2, limited: 1, unchecked: 1 };
    expect(await opened.outcomes()).toEqual(expected);
  });
});

describe('the verifier of tokens with an identity provider', () => {
  let issuer: Issuer;
  beforeAll(async () => {
    issuer = await startIssuer('ES256');
  });
  afterAll(() => issuer.close());

  it('finds the caller of its JWTs, and stores no use', async () => {
    const { verifier, log } = openVerifier({ OIDC_ISSUER: issuer.url, OIDC_AUDIENCE: AUDIENCE });
    expect(await verifier.verify(await issuer.sign())).toMatchObject({ name: 'gardener' });
    await settled();
    expect(log).toEqual([]);
  });

  it('refuses JWTs without one', async () => {
    const { verifier } = openVerifier({});
    await expect(verifier.verify(await issuer.sign())).rejects.toMatchObject(INVALID);
  });
});
