import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import type { Logger } from 'pino';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { PINO_LOGGER } from '../../src/logging/logging.module.js';
import { holdClock } from '../setup/time/clock.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const PLANT = '{"id":1,"name":"a"}';

describe('a token that was valid, once its verdict is too old', () => {
  const LIMIT = 3;
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService({ AUTH_FAILURES_PER_MINUTE: String(LIMIT) });
  });
  afterAll(() => service.close());

  it('is looked up again, even if other clients of its address sent too many wrong tokens', async () => {
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    const guess = () => service.post(PLANT, { authorization: `Bearer ${generateAccessToken()}` });
    for (let i = 0; i < LIMIT; i++) expect(await guess()).toMatchObject({ status: 401 });
    expect(await guess()).toMatchObject({ status: 429 });
    await advance(4000);
    const find = jest.spyOn(service.app.get(AccessTokensService), 'find');
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    expect(find).toHaveBeenCalledTimes(1);
    expect(await guess()).toMatchObject({ status: 429 });
  });
});

describe('the last use of a token, when it cannot be written', () => {
  let service: TestService;
  const advance = holdClock();

  beforeAll(async () => {
    service = await startService();
    await service.database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE TRIGGER refuse BEFORE UPDATE ON access_tokens EXECUTE FUNCTION refuse()`,
    );
  });
  afterAll(() => service.close());

  it('fails no request, is logged once a minute, and is written a minute later', async () => {
    const warn = jest.spyOn(service.app.get<Logger>(PINO_LOGGER), 'warn');
    const lastUse = async () => {
      const [row] = await service.database.query<{ at: Date | null }>(
        `SELECT last_used_at AS at FROM access_tokens WHERE name = 'test'`,
      );
      return row!.at;
    };
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    await until(() => warn.mock.calls.length > 0);
    expect(warn).toHaveBeenCalledWith(
      expect.stringMatching(/^The last use of a token could not be written: .*refused/),
    );
    await advance(59_999);
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    expect(warn).toHaveBeenCalledTimes(1);
    await service.database.query('DROP TRIGGER refuse ON access_tokens');
    expect(await lastUse()).toBeNull();
    await advance(1);
    expect(await service.post(PLANT)).toMatchObject({ status: 200 });
    await until(async () => (await lastUse()) !== null);
    expect(warn).toHaveBeenCalledTimes(1);
  });
});
