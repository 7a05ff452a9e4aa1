import { beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { ScriptedPool, TIMEOUT_MS } from '../../test/setup/database/scripted-pool.js';
import { holdTimers } from '../../test/setup/time/held-timers.js';
import { chainsSettled } from '../../test/setup/time/settled.js';
import { UnitDatabase, type DataSource } from '../../test/setup/database/unit-database.js';
import { databaseUnavailable } from '../errors/errors.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken, hashAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';

const HOUR_MS = 3_600_000;

describe('access tokens', () => {
  const database = new UnitDatabase('block');
  let dataSource: DataSource;
  let tokens: AccessTokensService;

  beforeAll(async () => {
    dataSource = await database.openWithSchema([AccessTokenEntity]);
  });
  beforeEach(async () => {
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
    await dataSource.query('TRUNCATE access_tokens');
  });

  const query = (sql: string): Promise<object[]> => dataSource.query(sql);

  /** Makes all tokens a second older: several that are made in one millisecond would have no order. */
  const age = () =>
    query(`UPDATE access_tokens SET created_at = created_at - interval '1 second',
                                    expires_at = expires_at - interval '1 second'`);

  const create = async (name: string, lifetime?: number) => {
    await age();
    return tokens.create(name, lifetime);
  };

  const names = async () => (await tokens.list()).map(({ name }) => name);

  const lifetimes = async () =>
    (await tokens.list()).map(
      ({ createdAt, expiresAt }) => expiresAt && expiresAt.getTime() - createdAt.getTime(),
    );

  it('have the table that the entity describes', async () => {
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    expect(upQueries).toEqual([]);
  });

  describe('that are created', () => {
    it('are found, with the name, the id and the expiry for the caller', async () => {
      const { token, id } = await create('shed', HOUR_MS);
      const [stored] = await tokens.list();
      expect(id).toMatch(/^[0-9a-f]{12}$/);
      expect(stored).toMatchObject({ id, name: 'shed' });
      expect(await tokens.find(token)).toEqual({
        name: 'shed',
        tokenId: id,
        expiresAt: stored!.createdAt.getTime() + HOUR_MS,
      });
      expect(await tokens.find(generateAccessToken())).toBeUndefined();
    });

    it('have their name and their lifetime exactly as they were given', async () => {
      await create(' shed ', 1400);
      expect(await names()).toEqual([' shed ']);
      expect(await lifetimes()).toEqual([1400]);
    });

    it('never expire without a lifetime', async () => {
      const { token } = await create('shed');
      expect(await lifetimes()).toEqual([null]);
      expect(await tokens.find(token)).toMatchObject({ expiresAt: undefined });
    });

    it('have null for an expiry of infinity, and for what has not happened', async () => {
      await create('shed');
      await query("UPDATE access_tokens SET expires_at = 'infinity'");
      expect(await tokens.list()).toMatchObject([
        { expiresAt: null, revokedAt: null, lastUsedAt: null },
      ]);
    });

    it('are stored as a hash only, which no list shows', async () => {
      const { token } = await create('shed');
      const [row] = await query('SELECT * FROM access_tokens');
      expect(row).toMatchObject({ hash: hashAccessToken(token) });
      expect(JSON.stringify(row)).not.toContain(token);
      const [text] = await query('SELECT access_tokens::text AS row FROM access_tokens');
      expect(JSON.stringify(text)).not.toContain(Buffer.from(token).toString('hex'));
      expect(JSON.stringify(await tokens.list())).not.toContain('hash');
    });

    it('for development replace the earlier ones, and no others', async () => {
      await create('shed');
      await age();
      const { revoked: none, ...first } = await tokens.createDevelopmentToken();
      expect(none).toEqual([]);
      await age();
      const { revoked, ...second } = await tokens.createDevelopmentToken();
      expect(revoked).toEqual([{ id: first.id, name: 'development' }]);
      expect(await tokens.find(first.token)).toBeUndefined();
      expect(await tokens.find(second.token)).toBeDefined();
      expect(await names()).toEqual(['shed', 'development', 'development']);
      expect(await tokens.findLive('development')).toHaveLength(1);
    });

    it('for development report only those as replaced that were live', async () => {
      await create('development', 1);
      await age();
      expect((await tokens.createDevelopmentToken()).revoked).toEqual([]);
    });
  });

  describe('in the list', () => {
    const insert = (from: number, to: number) =>
      query(
        `INSERT INTO access_tokens (id, name, hash, created_at)
         SELECT to_hex(i), i::text, sha256(i::text::bytea), now() - i * interval '1 second'
         FROM generate_series(${from}, ${to}) AS i`,
      );

    it('are the oldest first', async () => {
      await insert(11, 13);
      expect(await names()).toEqual(['13', '12', '11']);
    });

    it('are all there, however many pages they have', async () => {
      await insert(65_536, 65_536 + 10_000);
      const all = await names();
      expect([all.length, new Set(all).size]).toEqual([10_001, 10_001]);
    });
  });

  describe('that are live', () => {
    it('are found by their id, by themselves, or all of a name, the oldest first', async () => {
      const { token } = await create('shed');
      for (const name of ['barn', 'shed']) await create(name);
      // Postgres puts a changed row behind the others.
      await query(`UPDATE access_tokens SET last_used_at = now()
                   WHERE created_at = (SELECT min(created_at) FROM access_tokens)`);
      const [first, barn, third] = await tokens.list();
      expect(await tokens.findLive('shed')).toEqual([first, third]);
      expect(await tokens.findLive(barn!.id)).toEqual([barn]);
      expect(await tokens.findLive(token)).toEqual([first]);
      for (const word of ['house', generateAccessToken()]) {
        expect(await tokens.findLive(word)).toEqual([]);
      }
    });

    it.each<[string, string]>([
      ['revoked', 'revoked_at = now()'],
      ['expired', 'expires_at = now()'],
    ])('are not those that are %s', async (_state, change) => {
      const { token } = await create('shed', HOUR_MS);
      expect(await tokens.findLive('shed')).toHaveLength(1);
      await query(`UPDATE access_tokens SET ${change}`);
      expect(await tokens.find(token)).toBeUndefined();
      expect(await tokens.findLive('shed')).toEqual([]);
      expect(await tokens.findLive(token)).toEqual([]);
    });
  });

  it('that are revoked end, and keep the time at which they were revoked first', async () => {
    for (const name of ['shed', 'shed', 'barn']) await create(name);
    const ids = (await tokens.findLive('shed')).map(({ id }) => id);
    await tokens.revoke(ids.slice(0, 1));
    const [before] = await tokens.list();
    await tokens.revoke(ids);
    expect(await tokens.list()).toMatchObject([
      before!,
      { name: 'shed', revokedAt: expect.any(Date) },
      { name: 'barn', revokedAt: null },
    ]);
  });

  describe('that are rotated', () => {
    it('expire after the grace period, for a new token with the lifetime of the newest', async () => {
      for (const hours of [2, 24, 48]) await create('shed', hours * HOUR_MS);
      await create('barn');
      await query(`UPDATE access_tokens SET created_at = created_at - interval '1 hour',
                                            expires_at = expires_at - interval '1 hour'`);
      await age();
      const rotated = await tokens.rotate('shed', HOUR_MS);
      expect(await tokens.find(rotated!.token)).toMatchObject({ name: 'shed' });
      const list = await tokens.list();
      expect(rotated!.id).toBe(list.at(-1)!.id);
      expect(rotated!.replaced).toEqual(list.slice(0, 3));
      const minutes = (await lifetimes()).map((it) => it && Math.round(it / 60_000));
      expect(minutes).toEqual([120, 120, 120, null, 48 * 60]);
    });

    it('never live longer than before', async () => {
      await create('shed', HOUR_MS);
      await age();
      await tokens.rotate('shed', 24 * HOUR_MS);
      expect(await lifetimes()).toEqual([HOUR_MS, HOUR_MS]);
    });

    it('are replaced by one that never expires, like the newest, or has its own lifetime', async () => {
      await create('shed');
      await age();
      await tokens.rotate('shed', 0);
      expect((await lifetimes())[1]).toBeNull();
      await age();
      await tokens.rotate('shed', 0, HOUR_MS);
      expect((await lifetimes())[2]).toBe(HOUR_MS);
    });

    it('must be live: otherwise nothing is created', async () => {
      await create('shed');
      await tokens.revoke((await tokens.list()).map(({ id }) => id));
      await age();
      expect(await tokens.rotate('shed', HOUR_MS)).toBeUndefined();
      expect(await names()).toEqual(['shed']);
    });
  });
});

describe('access tokens, while the database does not respond', () => {
  const pool = new ScriptedPool();

  it('keep no request and no use for longer than the time limit of a statement', async () => {
    const arrived = Promise.withResolvers<void>();
    const end = Promise.withResolvers<undefined>();
    const dataSource = await pool.start(() => {
      arrived.resolve();
      return end.promise;
    });
    const tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
    holdTimers();
    const errors: unknown[] = [];
    // All but the first wait for the only connection.
    for (const id of ['1', '2']) {
      tokens.recordUse(id).catch((error: unknown) => errors.push(error));
      tokens.find(generateAccessToken()).catch((error: unknown) => errors.push(error));
    }
    await arrived.promise;
    jest.advanceTimersByTime(TIMEOUT_MS);
    await chainsSettled();
    end.resolve(undefined);
    expect(errors).toMatchObject(Array(4).fill({ code: databaseUnavailable.code }));
  });
});
