import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { UnitDatabase, type DataSource } from '../../test/setup/database/unit-database.js';
import { patientConfig } from '../../test/setup/database/patient.js';
import { holdClock } from '../../test/setup/time/clock.js';
import { until } from '../../test/setup/time/until.js';
import { readConfig } from '../config/config.js';
import { overloaded, tokenInvalid } from '../errors/errors.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';
import { TokenVerifierService } from './token-verifier.service.js';

const HOUR_MS = 3_600_000;
const POOL_SIZE = 4;

const OVERLOADED = { status: 'rejected', reason: { code: overloaded.code } };
const INVALID = { code: tokenInvalid.code };
const VALID = { status: 'fulfilled', value: { name: 'shed' } };

describe('the verifier of tokens', () => {
  const database = new UnitDatabase('block');
  let dataSource: DataSource;
  let tokens: AccessTokensService;
  let registry: Registry;
  let verifier: TokenVerifierService;
  let token: string;
  const advance = holdClock();

  const open = (env: Record<string, string> = {}) => {
    registry = new Registry();
    const config = readConfig(env);
    verifier = new TokenVerifierService(tokens, config, pino({ level: 'silent' }), registry);
  };
  beforeAll(async () => {
    dataSource = await database.openWithSchema(
      [AccessTokenEntity],
      patientConfig({ url: database.url, poolSize: POOL_SIZE }),
    );
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
  });
  beforeEach(async () => {
    open();
    ({ token } = await tokens.create('shed'));
  });

  const verify = (text: string) => verifier.verify(text);

  const lookupsInFlight = async () => {
    const { values } = await registry.getSingleMetric('plant_store_token_lookups')!.get();
    return values[0]!.value;
  };

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
    it('for four seconds, which begin with its lookup', async () => {
      const release = await holdLookUps();
      const caller = verify(token);
      await advance(1000);
      await release();
      await caller;
      await advance(2998);
      expect(verifier.findCached(token)).toMatchObject({ name: 'shed' });
      await advance(3);
      expect(verifier.findCached(token)).toBeUndefined();
    });

    // A token expires by the date, which an administrator or a time server may set.
    it('until it expires', async () => {
      const { token: short } = await tokens.create('short', HOUR_MS);
      const [info] = await tokens.findLive('short');
      await advance.changeDate(info!.expiresAt!.getTime() - Date.now() - 1000);
      await verify(short);
      await advance(998);
      expect(verifier.findCached(short)).toMatchObject({ name: 'short' });
      await advance(3);
      expect(verifier.findCached(short)).toBeUndefined();
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
      await expect(verify(wrong)).rejects.not.toMatchObject(INVALID);
    });
  });

  describe('a lookup', () => {
    /** Starts a lookup of each of these tokens, while all lookups wait. */
    const lookUpAll = async (texts: readonly string[]) => {
      const release = await holdLookUps();
      const results = Promise.allSettled(texts.map(verify));
      await until(async () => (await countWaiting()) > 0);
      return { results, release };
    };

    it('is shared by all requests with the same token', async () => {
      const { results, release } = await lookUpAll([token, token, token]);
      expect(await lookupsInFlight()).toBe(1);
      await release();
      expect(await results).toMatchObject([VALID, VALID, VALID]);
      expect(await lookupsInFlight()).toBe(0);
    });

    it('is refused with 50301 while MAX_PENDING_REQUESTS others wait', async () => {
      open({ MAX_PENDING_REQUESTS: '1' });
      const { results, release } = await lookUpAll([token]);
      const others = Promise.allSettled([generateAccessToken(), generateAccessToken()].map(verify));
      await release();
      expect(await results).toMatchObject([VALID]);
      expect(await others).toMatchObject([{ reason: INVALID }, OVERLOADED]);
    });

    it('is refused with 50301 after DATABASE_TIMEOUT_MS in the queue', async () => {
      open({ DATABASE_TIMEOUT_MS: '5000' });
      const { results, release } = await lookUpAll([token]);
      const other = Promise.allSettled([verify(generateAccessToken())]);
      await advance(5001);
      await release();
      expect(await results).toMatchObject([VALID]);
      expect(await other).toMatchObject([OVERLOADED]);
    });
  });
});
