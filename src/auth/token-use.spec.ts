import { beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { holdClock } from '../../test/setup/time/clock.js';
import { openVerifier, type TestVerifier } from '../../test/tokens/token-verifier.js';
import { UnitDatabase, type DataSource } from '../../test/setup/database/unit-database.js';
import { AccessTokenEntity } from './access-token.entity.js';
import { generateAccessToken } from './access-token.js';
import { AccessTokensService } from './access-tokens.service.js';

const HOUR_MS = 3_600_000;

describe('the last use of an access token', () => {
  const database = new UnitDatabase('block');
  let dataSource: DataSource;
  let tokens: AccessTokensService;
  let opened: TestVerifier;
  let token: string;
  let id: string;
  const advance = holdClock();

  beforeAll(async () => {
    dataSource = await database.openWithSchema([AccessTokenEntity]);
  });
  beforeEach(async () => {
    await query('TRUNCATE access_tokens');
    tokens = new AccessTokensService(dataSource.getRepository(AccessTokenEntity));
    opened = openVerifier({}, tokens);
    ({ token, id } = await tokens.create('shed'));
  });

  const verify = (text: string) => opened.verifier.verify(text, '192.0.2.1');

  const query = (sql: string, parameters?: unknown[]): Promise<unknown> =>
    dataSource.query(sql, parameters);

  /** Runs on the only connection, so after a use that is being stored. */
  const lastUse = async () => (await tokens.list())[0]!.lastUsedAt;

  const useAgo = (seconds: number | null) =>
    query(`UPDATE access_tokens SET last_used_at = now() - $1 * interval '1 second'`, [seconds]);

  it('is stored for its own token only', async () => {
    await tokens.recordUse('other');
    expect(await lastUse()).toBeNull();
    await tokens.recordUse(id);
    expect(await lastUse()).toBeInstanceOf(Date);
  });

  it('is stored at most once a minute, whatever the number of processes', async () => {
    await useAgo(50);
    const recent = await lastUse();
    await tokens.recordUse(id);
    expect(await lastUse()).toEqual(recent);
    await useAgo(61);
    await tokens.recordUse(id);
    expect((await lastUse())!.getTime()).toBeGreaterThan(recent!.getTime());
  });

  it('is stored when the token is checked, and a minute later when a cached verdict is used', async () => {
    const caller = { name: 'shed', tokenId: id, expiresAt: undefined };
    expect(await verify(token)).toEqual(caller);
    expect(await lastUse()).toBeInstanceOf(Date);
    await useAgo(null);
    for (const milliseconds of [0, 59_999]) {
      await advance(milliseconds);
      await verify(token);
      expect(opened.verifier.findCached(token)).toEqual(caller);
    }
    expect(await lastUse()).toBeNull();
    await advance(1);
    expect(opened.verifier.findCached(token)).toEqual(caller);
    expect(await lastUse()).toBeInstanceOf(Date);
    expect(opened.log).toEqual([]);
  });

  it.each([
    ['back', -HOUR_MS],
    ['ahead', HOUR_MS],
  ])('is stored once a minute, even if the date is set %s meanwhile', async (_how, change) => {
    await verify(token);
    await useAgo(null);
    await advance.changeDate(change);
    await advance(59_999);
    await verify(token);
    expect(await lastUse()).toBeNull();
    await advance(1);
    opened.verifier.findCached(token);
    expect(await lastUse()).toBeInstanceOf(Date);
  });

  it('fails no request if it cannot be stored, and is logged', async () => {
    await query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON access_tokens EXECUTE FUNCTION refuse()`,
    );
    expect(await verify(token)).toMatchObject({ name: 'shed' });
    await lastUse();
    await query('DROP FUNCTION refuse CASCADE');
    expect(opened.log).toEqual([
      expect.stringMatching(/^The last use of a token could not be written: .*refused/),
    ]);
  });

  it('has no token that is not valid', async () => {
    expect(await verify(generateAccessToken())).toBeUndefined();
    expect(await verify(`${token}x`)).toBeUndefined();
    expect(await lastUse()).toBeNull();
  });
});
