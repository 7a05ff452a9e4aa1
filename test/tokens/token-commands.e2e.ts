import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const ROTATED = expect.stringMatching(
  /^\{.+"msg":"Rotated the token greenhouse: the new one is [0-9a-f]{12}\. [0-9a-f]{12} works until \d{4}-\d\d-\d\d \d\d:\d\dZ\."\}\n$/,
);
const CREATED = expect.stringMatching(/^\{.+"msg":"Created the token .+ \([0-9a-f]{12}\)\."\}\n$/);

/** What a command reports in JSON. */
const entriesIn = (stderr: string) =>
  stderr
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('the token commands, beside a running service', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE access_tokens'));
  afterAll(() => service.close());

  const settings = () => ({ DATABASE_URL: service.database.url });

  const token = async (...args: string[]) => {
    // Tokens that are made in one millisecond have no order in the list.
    if (args[0] === 'create') {
      await service.database.query(
        "UPDATE access_tokens SET created_at = created_at - interval '1 second'",
      );
    }
    return runInProcess(['token', ...args], settings());
  };

  const tokenIn = (surroundings: Surroundings, ...args: string[]) =>
    runInProcess(['token', ...args], settings(), surroundings);

  const tokens = () => service.app.get(AccessTokensService);

  const status = async (secret: string) =>
    (await service.post('{"id":1,"name":"a"}', { authorization: `Bearer ${secret.trim()}` }))
      .status;

  const list = async () =>
    JSON.parse((await token('list', '--json')).stdout) as Record<string, string | null>[];

  it('create prints only the token', async () => {
    const created = await token('create', 'greenhouse');
    expect(created).toMatchObject({ exitCode: 0, stderr: CREATED });
    expect(created.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    expect(await status(created.stdout)).toBe(200);
    expect(await list()).toMatchObject([{ name: 'greenhouse', status: 'live', expiresAt: null }]);
  });

  it('create reports the token in a sentence on a terminal', async () => {
    const { stderr } = await tokenIn({ isTerminal: true }, 'create', 'greenhouse');
    const [row] = await list();
    expect(stderr).toBe(`Created the token greenhouse (${row!['id']}).\n`);
  });

  it.each([
    ['of 100 characters', 'x'.repeat(100)],
    ['with all kinds of visible characters', 'Ácer 🌱 (2)'],
  ])('create accepts a name %s', async (_kind, name) => {
    expect(await token('create', name)).toMatchObject({ exitCode: 0, stderr: CREATED });
    expect(await list()).toMatchObject([{ name }]);
  });

  it.each([
    ['of 101 characters', 'x'.repeat(101)],
    ['without a letter or a digit', '* _ *'],
    ['with a line break', 'a\nb'],
    ['that would change the colors of a terminal', 'a\u001b[31m'],
    ['with an invisible character', 'a\u200b'],
  ])('create refuses a name %s', async (_kind, name) => {
    expect(await token('create', name)).toMatchObject({
      exitCode: 2,
      stdout: '',
      stderr: expect.stringMatching(/^A name must have 1 to 100 visible characters, .+\n$/),
    });
    expect(await list()).toEqual([]);
  });

  it('create --expires sets the time of expiry', async () => {
    await token('create', 'greenhouse', '--expires', '90d');
    const [row] = await list();
    const lifetime = Date.parse(row!['expiresAt']!) - Date.parse(row!['createdAt']!);
    expect(lifetime).toBe(90 * 24 * 60 * 60 * 1000);
  });

  it('list shows a table for people, and JSON for programs, but never a token or its hash', async () => {
    const created = await token('create', 'greenhouse');
    const table = await token('list');
    const json = await token('list', '--json');
    expect(table.stdout).toMatch(
      /^ID +NAME +STATUS +CREATED +EXPIRES +LAST USED\n[0-9a-f]{12} +greenhouse +live /,
    );
    expect(JSON.parse(json.stdout)).toEqual([
      {
        id: expect.stringMatching(/^[0-9a-f]{12}$/),
        name: 'greenhouse',
        status: 'live',
        createdAt: expect.any(String),
        expiresAt: null,
        revokedAt: null,
        lastUsedAt: null,
      },
    ]);
    expect(table.stdout + json.stdout).not.toContain(created.stdout.trim().slice(11));
  });

  it('revoke ends all tokens of a name, or the token with an id', async () => {
    await token('create', 'greenhouse');
    await token('create', 'shed');
    await token('create', 'shed');
    const [greenhouse] = await list();
    expect(await token('revoke', greenhouse!['id']!, '--yes')).toMatchObject({
      exitCode: 0,
      stdout: '',
    });
    expect((await list()).map((row) => row['status'])).toEqual(['revoked', 'live', 'live']);
    expect(await token('revoke', 'shed', '--yes')).toMatchObject({ exitCode: 0 });
    expect((await list()).map((row) => row['status'])).toEqual(['revoked', 'revoked', 'revoked']);
  });

  it('revoke says which tokens it ended', async () => {
    await token('create', 'shed');
    await token('create', 'shed');
    const { stderr } = await token('revoke', 'shed', '--yes');
    const ids = (await list()).map(({ id }) => id);
    expect(entriesIn(stderr)).toMatchObject(
      ids.map((id) => ({ token: 'shed', tokenId: id, msg: `Revoked the token shed (${id}).` })),
    );
  });

  it('revoke says that no token in a text is live', async () => {
    const text = `${generateAccessToken()} and ${generateAccessToken()}`;
    expect(await token('revoke', text, '--yes')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: 'No token in this text is live. "./plant-store token list" shows all tokens.\n',
    });
  });

  it('revoke takes all its words for one name', async () => {
    await token('create', 'green');
    await token('create', 'green house');
    expect(await token('revoke', 'green', 'house', '--yes')).toMatchObject({ exitCode: 0 });
    expect(await list()).toMatchObject([
      { name: 'green', status: 'live' },
      { name: 'green house', status: 'revoked' },
    ]);
  });

  it('revoke says that a token which was cut off or mistyped is not a whole one', async () => {
    for (const text of [
      generateAccessToken().slice(0, -1),
      `${generateAccessToken()}`.slice(0, 20),
    ]) {
      const { stderr } = await token('revoke', text, '--yes');
      expect(stderr).toMatch(
        /^This is not a whole token: .+ Paste all of it, or use its name or id\./,
      );
    }
  });

  it('revoke asks for a confirmation, and does nothing without a terminal', async () => {
    await token('create', 'greenhouse');
    expect(await token('revoke', 'greenhouse')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining('--yes'),
    });
    expect(await list()).toMatchObject([{ status: 'live' }]);
  });

  it.each([
    ['yes', 0, 'revoked'],
    ['n', 1, 'live'],
  ])('revoke asks a person at a terminal, who types "%s"', async (typed, exitCode, status) => {
    await token('create', 'greenhouse');
    const revoked = await tokenIn({ typed: `${typed}\n` }, 'revoke', 'greenhouse');
    expect(revoked).toMatchObject({ exitCode, stdout: '' });
    expect(revoked.stderr).toContain('This revokes greenhouse (');
    expect(await list()).toMatchObject([{ status }]);
  });

  it('rotate prints a new token, and the old one expires after the grace period', async () => {
    const old = await token('create', 'greenhouse', '--expires', '30d');
    const created = await token('rotate', 'greenhouse', '--grace', '1h');
    expect(created).toMatchObject({ exitCode: 0, stderr: ROTATED });
    expect(await status(old.stdout)).toBe(200);
    expect(await status(created.stdout)).toBe(200);
    const [first, second] = await list();
    const until = first!['expiresAt']!.slice(0, 16).replace('T', ' ');
    expect(entriesIn(created.stderr)).toEqual([
      {
        level: 30,
        time: expect.stringMatching(/^\d{4}-.+Z$/),
        token: 'greenhouse',
        tokenId: second!['id'],
        msg: `Rotated the token greenhouse: the new one is ${second!['id']}. ${first!['id']} works until ${until}Z.`,
      },
    ]);
    const hours = (row: typeof first) =>
      Math.round((Date.parse(row!['expiresAt']!) - Date.parse(row!['createdAt']!)) / 3_600_000);
    expect([hours(first), hours(second)]).toEqual([1, 30 * 24]);
  });

  it('rotate --expires sets the lifetime of the new token', async () => {
    await token('create', 'greenhouse', '--expires', '30d');
    await token('rotate', 'greenhouse', '--expires', '7d');
    const [, created] = await list();
    const lifetime = Date.parse(created!['expiresAt']!) - Date.parse(created!['createdAt']!);
    expect(lifetime).toBe(7 * 24 * 60 * 60 * 1000);
  });

  it('rotate ends the old token after 24 hours if no grace period is given', async () => {
    await token('create', 'greenhouse');
    expect(await token('rotate', 'greenhouse')).toMatchObject({ exitCode: 0, stderr: ROTATED });
    const [old, created] = await list();
    const grace = Date.parse(old!['expiresAt']!) - Date.parse(created!['createdAt']!);
    expect(Math.round(grace / 60_000)).toBe(24 * 60);
  });

  it('revoke accepts a token that leaked, and never repeats it', async () => {
    const leaked = (await token('create', 'greenhouse')).stdout.trim();
    const results = [
      await token('revoke', leaked, '--yes'),
      await token('revoke', leaked, '--yes'),
    ];
    expect(results.map(({ exitCode }) => exitCode)).toEqual([0, 1]);
    expect(await list()).toMatchObject([{ status: 'revoked' }]);
    results.push(await token('create', leaked), await token('create', `my ${leaked}`));
    results.push(await token('rotate', leaked, '--grace', '0', '--yes'));
    expect(results.slice(2).map(({ exitCode }) => exitCode)).toEqual([2, 2, 2]);
    for (const { stdout, stderr } of results) expect(stdout + stderr).not.toContain(leaked);
    expect(await list()).toHaveLength(1);
  });

  it('revoke finds a token in all the words of a curl line, unquoted', async () => {
    const leaked = await tokens().create('greenhouse');
    const curl = ['curl', '-sS', '-X', 'POST', '-H', `Authorization: Bearer ${leaked}`, '-d', '{}'];
    expect(await token('revoke', ...curl, '--yes')).toMatchObject({ exitCode: 0 });
    expect(await tokens().findLive('greenhouse')).toEqual([]);
  });

  it('revoke ends all tokens in a text, and says how many were not live', async () => {
    const leaked = [
      await tokens().create('greenhouse'),
      await tokens().create('shed'),
      generateAccessToken(),
    ];
    await tokens().create('other');
    const revoked = await token('revoke', '--yes', leaked.join(' and '));
    expect(revoked).toMatchObject({ exitCode: 0, stdout: '' });
    expect(revoked.stderr).toContain('1 of the 3 tokens');
    const states = (await list()).map(({ name, status }) => [name, status]);
    expect(Object.fromEntries(states)).toEqual({
      greenhouse: 'revoked',
      shed: 'revoked',
      other: 'live',
    });
  });

  it('no message repeats a token or a part of one', async () => {
    const whole = generateAccessToken();
    const mistyped = `${whole.slice(0, -1)}${whole.endsWith('A') ? 'B' : 'A'}`;
    const cutOff = whole.slice(0, 20);
    const rest = whole.slice(11);
    const commands = [
      ['revoke', `Bearer ${whole}`],
      ['revoke', mistyped],
      ['revoke', cutOff],
      ['revoke', rest],
      ['rotate', mistyped],
      ['rotate', rest, '--grace', '0'],
      ['create', cutOff],
      ['create', whole.replace('plant', 'Plant').slice(0, -1)],
      ['create', 'x', '--expires', whole],
      [mistyped],
      [rest],
      [`--${cutOff}`],
    ];
    for (const args of commands) {
      const { exitCode, stdout, stderr } = await token(...args);
      expect({ args, exitCode }).not.toMatchObject({ exitCode: 0 });
      expect(stdout).toBe('');
      expect(stderr).not.toContain(whole.slice(11, 20));
    }
    expect(await list()).toEqual([]);
  });

  it('list says in one line that the list cannot be printed', async () => {
    const result = await tokenIn({ stdout: '/dev/full' }, 'list');
    expect(result.exitCode).toBe(1);
    expect(result.stderr).toMatch(
      /^Standard output could not be written: the disk is full\. Nothing was changed\. .+\n$/,
    );
  });

  it('revoke by id ends only that token, even if the id is the name of another one', async () => {
    await token('create', 'greenhouse');
    const [greenhouse] = await list();
    await token('create', greenhouse!['id']!);
    await token('revoke', greenhouse!['id']!, '--yes');
    expect((await list()).map((row) => row['status'])).toEqual(['revoked', 'live']);
  });

  it('rotate --grace 0 ends the old token within seconds, and asks for a confirmation', async () => {
    const old = await token('create', 'greenhouse');
    const [{ id }] = (await list()) as [{ id: string }];
    for (const [grace, end] of [
      ['0', 'within five seconds'],
      ['1s', 'in 1 second'],
      ['59m', 'in 59 minutes'],
    ]) {
      expect(await token('rotate', 'greenhouse', '--grace', grace!)).toMatchObject({
        exitCode: 1,
        stdout: '',
        stderr: expect.stringContaining(`The current tokens of this name stop working ${end}. `),
      });
    }
    const created = await token('rotate', 'greenhouse', '--grace', '0', '--yes');
    expect(created.stderr).toContain(` ${id} stops working within five seconds.`);
    expect(await status(old.stdout)).toBe(401);
    expect(await status(created.stdout)).toBe(200);
  });

  it('rotate tells a person at a terminal what a grace period below one hour does', async () => {
    await token('create', 'greenhouse');
    const rotated = await tokenIn({ typed: 'n\n' }, 'rotate', 'greenhouse', '--grace', '59m');
    expect(rotated).toMatchObject({ exitCode: 1, stdout: '' });
    expect(rotated.stderr).toMatch(
      /^The current tokens of this name stop working in 59 minutes\. This cannot be undone\./,
    );
    expect(await list()).toMatchObject([{ status: 'live', expiresAt: null }]);
  });

  it('rotate makes no token if the last one is revoked meanwhile', async () => {
    await token('create', 'greenhouse');
    const other = new pg.Client({ connectionString: service.database.url });
    await other.connect();
    let rotated: ReturnType<typeof token>;
    try {
      // The settings of the database may end sessions that hold a lock.
      await other.query('SET idle_in_transaction_session_timeout = 0');
      await other.query('BEGIN; UPDATE access_tokens SET revoked_at = now()');
      rotated = token('rotate', 'greenhouse');
      const waiting = `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'`;
      await until(async () => (await service.database.query(waiting)).length > 0);
      await other.query('COMMIT');
    } finally {
      await other.end();
    }
    expect(await rotated).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^There is no live token of this name.*\n$/),
    });
    expect(await list()).toMatchObject([{ status: 'revoked' }]);
  });

  it('says that a printed token may not have been stored when its commit fails', async () => {
    await service.database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON access_tokens
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    const created = await token('create', 'greenhouse');
    await service.database.query('DROP FUNCTION refuse CASCADE');
    expect(created.exitCode).toBe(1);
    expect(created.stderr).toMatch(/^The printed token may not have been stored\. .+\n/);
    expect(created.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    expect(await status(created.stdout)).toBe(401);
    expect(await list()).toEqual([]);
  });

  it.each([
    [['revoke', 'nobody', '--yes'], 1, /^There is no live token of this name.*\n$/],
    [['rotate', 'nobody'], 1, /^There is no live token of this name.*\n$/],
    [['rotate', 'nobody', '--grace', '0'], 1, /^There is no live token of this name.*\n$/],
    [['revoke', 'nobody', '--force'], 2, /^Unknown option.*\n$/],
    [['create'], 2, /missing required argument 'name'/],
    [['create', ''], 2, /A name must have 1 to 100/],
    [['create', 'x', '--expires', 'soon'], 2, /Use a number of up to four digits and a unit/],
    [['create', 'x', '--expires', '0s'], 2, /would never work/],
    [['create', '\u200b'], 2, /visible characters/],
    [['create', 'x', 'y'], 2, /too many arguments/],
    [['destroy', 'x'], 2, /unknown command 'destroy'/],
  ])('%j ends with exit code %d and the reason', async (args, exitCode, reason) => {
    const result = await token(...args);
    expect(result).toMatchObject({ exitCode, stdout: '' });
    expect(result.stderr).toMatch(reason);
    expect(await list()).toEqual([]);
  });

  it('--help shows the options, with exit code 0', async () => {
    const help = await token('create', '--help');
    expect(help.exitCode).toBe(0);
    expect(help.stdout).toContain('--expires');
  });

  it.each([
    ['/dev/full', 'the disk is full'],
    ['/dev/null', '/dev/null'],
  ])('makes no token that cannot be printed: >%s', async (stdout, reason) => {
    const old = await tokens().create('greenhouse');
    const before = await tokens().list();
    const results = [
      await tokenIn({ stdout }, 'create', 'shed'),
      await tokenIn({ stdout }, 'rotate', 'greenhouse', '--grace', '0', '--yes'),
    ];
    for (const result of results) {
      expect(result).toMatchObject({ exitCode: 1, stdout: '' });
      expect(result.stderr).toMatch(/^Standard output .+ Run the command again with .+\n$/);
      expect(result.stderr).toContain(reason);
    }
    expect(await tokens().list()).toEqual(before);
    expect(await status(old)).toBe(200);
  });
});
