import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { generateAccessToken } from '../../src/auth/access-token.js';
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

  const status = async (secret: string) =>
    (await service.post('{"id":1,"name":"a"}', { authorization: `Bearer ${secret.trim()}` }))
      .status;

  const hoursOf = (row: Record<string, string | null>) =>
    Math.round((Date.parse(row['expiresAt']!) - Date.parse(row['createdAt']!)) / 3_600_000);

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
    expect(hoursOf(row!)).toBe(90 * 24);
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

  it('a name that begins with - comes last, after --, as the usage says', async () => {
    expect(await token('revoke', '-shed')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('after --\n'),
    });
    for (const words of [['create'], ['rotate', '--expires', '1d'], ['revoke', '--yes']]) {
      expect(await token(...words, '--', '-shed')).toMatchObject({ exitCode: 0 });
    }
    expect(await list()).toMatchObject([
      { name: '-shed', status: 'revoked' },
      { name: '-shed', status: 'revoked' },
    ]);
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
    ['yes\n', 0, 'revoked'],
    [' Y\n', 0, 'revoked'],
    ['n\n', 1, 'live'],
    ['\n', 1, 'live'],
    ['yesterday\n', 1, 'live'],
    ['', 1, 'live'],
  ])('revoke asks a person at a terminal, who types %j', async (typed, exitCode, status) => {
    await token('create', 'greenhouse');
    const revoked = await tokenIn({ typed }, 'revoke', 'greenhouse');
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
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.+Z$/),
        token: 'greenhouse',
        tokenId: second!['id'],
        msg: `Rotated the token greenhouse: the new one is ${second!['id']}. ${first!['id']} works until ${until}Z.`,
      },
    ]);
    expect([first!, second!].map(hoursOf)).toEqual([1, 30 * 24]);
  });

  it('rotate --expires sets the lifetime of the new token', async () => {
    await token('create', 'greenhouse', '--expires', '30d');
    await token('rotate', 'greenhouse', '--expires', '7d');
    const [, created] = await list();
    expect(hoursOf(created!)).toBe(7 * 24);
  });

  it('rotate ends the old token after 24 hours if no grace period is given', async () => {
    await token('create', 'greenhouse');
    expect(await token('rotate', 'greenhouse')).toMatchObject({ exitCode: 0, stderr: ROTATED });
    const [old, created] = await list();
    const grace = Date.parse(old!['expiresAt']!) - Date.parse(created!['createdAt']!);
    expect(Math.round(grace / 60_000)).toBe(24 * 60);
  });

  it('revoke accepts a token that leaked', async () => {
    const leaked = (await token('create', 'greenhouse')).stdout.trim();
    await token('create', 'shed');
    for (const exitCode of [0, 1]) {
      // A line end is in a variable that was read from a file of Windows.
      expect(await token('revoke', `${leaked}\r`, '--yes')).toMatchObject({ exitCode, stdout: '' });
    }
    expect(await list()).toMatchObject([{ status: 'revoked' }, { status: 'live' }]);
  });

  it('no token, and no part of one, is a name', async () => {
    const whole = generateAccessToken();
    for (const name of [
      whole,
      `my ${whole}`,
      whole.slice(0, 20),
      whole.replace('plant', 'Plant'),
    ]) {
      for (const command of ['create', 'rotate']) {
        expect(await token(command, name)).toMatchObject({
          exitCode: 2,
          stdout: '',
          stderr: expect.stringMatching(/^This is a token or a part of one, not a name: .+\n$/),
        });
      }
    }
    expect(await list()).toEqual([]);
  });

  it('list says in one line that the list cannot be printed', async () => {
    const result = await tokenIn({ stdout: '/dev/full' }, 'list');
    expect(result).toMatchObject({
      exitCode: 1,
      stderr:
        'Standard output could not be written: the disk is full. What was written is not complete.\n',
    });
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

  /** Starts a command while another session has changed or locked all tokens, and commits when it waits for that. */
  const whileLocked = async (statement: string, ...commands: string[][]) => {
    const other = new pg.Client({ connectionString: service.database.url });
    await other.connect();
    try {
      // The settings of the database may end sessions that hold a lock.
      await other.query(`SET idle_in_transaction_session_timeout = 0; BEGIN; ${statement}`);
      // A wait for a lock ends after a tenth of this: a command that begins late must find the others waiting.
      const env = { ...settings(), DATABASE_TIMEOUT_MS: '60000' };
      const results = commands.map((command) => runInProcess(['token', ...command], env));
      const waiting = `SELECT 1 FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%FOR UPDATE%'`;
      await until(async () => (await service.database.query(waiting)).length === commands.length);
      await other.query('COMMIT');
      return await Promise.all(results);
    } finally {
      await other.end();
    }
  };

  it('rotate makes no token if the last one is revoked meanwhile', async () => {
    await token('create', 'greenhouse');
    const [rotated] = await whileLocked('UPDATE access_tokens SET revoked_at = now()', [
      'rotate',
      'greenhouse',
    ]);
    expect(rotated).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringMatching(/^There is no live token of this name.*\n$/),
    });
    expect(await list()).toMatchObject([{ status: 'revoked' }]);
  });

  it('rotate twice at the same time makes two tokens with the lifetime of the name', async () => {
    const old = await token('create', 'greenhouse', '--expires', '30d');
    const rotate = ['rotate', 'greenhouse', '--grace', '1h'];
    const lock = 'SELECT 1 FROM access_tokens FOR UPDATE';
    const rotated = await whileLocked(lock, rotate, rotate);
    expect(rotated).toMatchObject(Array(2).fill({ exitCode: 0, stderr: ROTATED }));
    expect(await Promise.all([old, ...rotated].map(({ stdout }) => status(stdout)))).toEqual([
      ...[200, 200, 200],
    ]);
    expect((await list()).map(hoursOf)).toEqual([1, 30 * 24, 30 * 24]);
  });

  it('rotate gives the lifetime of the name if its only live token is in its grace period', async () => {
    await token('create', 'greenhouse', '--expires', '30d');
    await token('rotate', 'greenhouse', '--grace', '1h');
    const [, second] = await list();
    await token('revoke', second!['id']!, '--yes');
    expect(await token('rotate', 'greenhouse', '--grace', '1h')).toMatchObject({ exitCode: 0 });
    expect((await list()).map(hoursOf)).toEqual([1, 30 * 24, 30 * 24]);
  });

  it('prints no token whose commit fails', async () => {
    await service.database.query(
      `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$;
       CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON access_tokens
         DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION refuse()`,
    );
    const created = await token('create', 'greenhouse');
    await service.database.query('DROP FUNCTION refuse CASCADE');
    expect(created).toMatchObject({ exitCode: 1, stdout: '' });
    expect(created.stderr).toMatch(/^The database refused: refused.*\.\n$/);
    expect(await list()).toEqual([]);
  });

  it.each([
    [['revoke', 'nobody', '--yes'], 1, /^There is no live token of this name.*\n$/],
    [['rotate', 'nobody'], 1, /^There is no live token of this name.*\n$/],
    [['rotate', 'nobody', '--grace', '0'], 1, /^There is no live token of this name.*\n$/],
    [['revoke'], 2, /missing required argument 'name\|id\|token'/],
    [['revoke', 'green', 'house', '--yes'], 2, /too many arguments/],
    [['revoke', 'nobody', '--force'], 2, /unknown option '--force'/],
    [['create'], 2, /missing required argument 'name'/],
    [['create', ''], 2, /A name must have 1 to 100/],
    [['create', 'x', '--expires', 'soon'], 2, /Use a number of up to four digits and a unit/],
    [['create', 'x', '--expires', '0s'], 2, /would never work/],
    [['create', '\u200b'], 2, /visible characters/],
    [['create', 'x', 'y'], 2, /too many arguments/],
    [['destroy', 'x'], 2, /unknown command 'destroy'/],
    [['destroy', '--help'], 2, /unknown command 'destroy'/],
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

  it('reports a token that is committed but cannot be printed, with its id', async () => {
    const created = await tokenIn({ stdout: '/dev/full' }, 'create', 'shed');
    expect(created.exitCode).toBe(1);
    const [{ id }] = (await list()) as [{ id: string }];
    expect(created.stderr).toMatch(
      new RegExp(`^\\{.+"tokenId":"${id}".+\\}\nStandard output could not be written: .+\n$`),
    );
  });
});
