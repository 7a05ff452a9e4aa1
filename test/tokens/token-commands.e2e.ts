import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import pg from 'pg';
import { generateAccessToken } from '../../src/auth/access-token.js';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import { NODE, runCommand, runProgram } from '../setup/process/command.js';
import { runInProcess, type Surroundings } from '../setup/service/cli.js';
import { startService, type TestService } from '../setup/service/service.js';
import { until } from '../setup/time/until.js';

const HOUR_MS = 3_600_000;

const ROTATED = expect.stringMatching(
  /^\{.+"msg":"Rotated the token greenhouse: the new one is [0-9a-f]{12}\.( [0-9a-f]{12} works until \d{4}-\d\d-\d\d \d\d:\d\dZ\.)+"\}\n$/,
);
const NO_LIVE_TOKEN = expect.stringMatching(/^There is no live token of this name.*\n$/);

describe('the token commands, beside a running service', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE access_tokens'));
  afterAll(() => service.close());

  const settings = () => ({ DATABASE_URL: service.database.url });

  const tokens = () => service.app.get(AccessTokensService);
  const token = (...args: string[]) => runInProcess(['token', ...args], settings());
  const tokenIn = (surroundings: Surroundings, ...args: string[]) =>
    runInProcess(['token', ...args], settings(), surroundings);

  /** Makes all tokens a second older: several that are made in one millisecond would have no order. */
  const age = () =>
    service.database.query(
      `UPDATE access_tokens SET created_at = created_at - interval '1 second',
                                expires_at = expires_at - interval '1 second'`,
    );

  /** Creates a token that is newer than all others. @returns the token */
  const create = async (name: string, lifetimeHours?: number) => {
    await age();
    return (await tokens().create(name, lifetimeHours && lifetimeHours * HOUR_MS)).token;
  };

  /** What is stored, the oldest first. */
  const stored = () => tokens().list();
  const ids = async () => (await stored()).map(({ id }) => id);
  const areRevoked = async () => (await stored()).map(({ revokedAt }) => revokedAt !== null);
  const lifetimes = async () =>
    (await stored()).map(
      ({ createdAt, expiresAt }) => expiresAt && expiresAt.getTime() - createdAt.getTime(),
    );
  const hours = async () => (await lifetimes()).map((it) => it && Math.round(it / HOUR_MS));

  const status = async (secret: string) =>
    (await service.post('{"id":1,"name":"a"}', { authorization: `Bearer ${secret.trim()}` }))
      .status;

  describe('create', () => {
    it('prints only the token, and reports it in JSON', async () => {
      const { exitCode, stdout, stderr } = await token('create', 'greenhouse');
      expect(exitCode).toBe(0);
      expect(stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
      expect(await status(stdout)).toBe(200);
      const [id] = await ids();
      expect(JSON.parse(stderr)).toEqual({
        level: 'info',
        time: expect.stringMatching(/^\d{4}-.+Z$/),
        token: 'greenhouse',
        tokenId: id,
        msg: `Created the token greenhouse (${id}).`,
      });
      expect(await lifetimes()).toEqual([null]);
    });

    it('reports the token in a sentence on a terminal', async () => {
      const { stderr } = await tokenIn({ isTerminal: true }, 'create', 'greenhouse');
      expect(stderr).toBe(`Created the token greenhouse (${(await ids())[0]}).\n`);
    });

    it.each(['x'.repeat(100), ' plantstore Ácer 🌱 (2)'])('accepts the name %j', async (name) => {
      expect(await token('create', name)).toMatchObject({ exitCode: 0 });
      expect(await stored()).toMatchObject([{ name }]);
    });

    it.each([
      ['of 101 characters', 'x'.repeat(101)],
      ['without a letter or a digit', '* _ *'],
      ['that would change the colors of a terminal', 'a\u001b[31m'],
      ['with an invisible character', 'a\u200b'],
    ])('refuses a name %s', async (_kind, name) => {
      expect(await token('create', name)).toMatchObject({
        exitCode: 2,
        stdout: '',
        stderr: expect.stringMatching(/^A name must have 1 to 100 visible characters, .+\n$/),
      });
      expect(await stored()).toEqual([]);
    });

    it.each([
      ['30s', 30_000],
      ['15m', HOUR_MS / 4],
      ['90d', 90 * 24 * HOUR_MS],
      ['9999w', 69_993 * 24 * HOUR_MS],
    ])('--expires %s sets the lifetime', async (lifetime, milliseconds) => {
      await token('create', 'greenhouse', '--expires', lifetime);
      expect(await lifetimes()).toEqual([milliseconds]);
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
      expect(await stored()).toEqual([]);
    });

    it('reports a token that is committed but cannot be printed, with its id', async () => {
      const created = await tokenIn({ stdout: '/dev/full' }, 'create', 'shed');
      expect(created.exitCode).toBe(1);
      expect(created.stderr).toMatch(
        new RegExp(
          `^\\{.+"tokenId":"${(await ids())[0]}".+\\}\nStandard output could not be written: the disk is full\\. .+\n$`,
        ),
      );
    });
  });

  it('list shows a table for people, and JSON for programs, the oldest first, but no hash', async () => {
    await service.database.query(
      `INSERT INTO access_tokens (id, name, hash, created_at, expires_at, revoked_at, last_used_at) VALUES
       ('cccccccccccc', 'a', '3', '2025-11-20T14:05:59Z', '2025-11-20T14:05:59Z', '2025-11-20T14:05:59Z', NULL),
       ('bbbbbbbbbbbb', 'shed', '2', '2025-11-19T14:05:59Z', '2025-11-19T15:05:59Z', NULL, NULL),
       ('aaaaaaaaaaaa', 'greenhouse', '1', '2025-11-18T14:05:59Z', 'infinity', NULL, '2025-11-19T04:05:59Z')`,
    );
    expect((await token('list')).stdout).toBe(
      [
        'ID            NAME        STATUS   CREATED            EXPIRES            LAST USED',
        'aaaaaaaaaaaa  greenhouse  live     2025-11-18 14:05Z  never              2025-11-19 04:05Z',
        'bbbbbbbbbbbb  shed        expired  2025-11-19 14:05Z  2025-11-19 15:05Z  never',
        'cccccccccccc  a           revoked  2025-11-20 14:05Z  2025-11-20 14:05Z  never',
        '',
      ].join('\n'),
    );
    const rows = JSON.parse((await token('list', '--json')).stdout) as object[];
    expect(rows[0]).toEqual({
      id: 'aaaaaaaaaaaa',
      name: 'greenhouse',
      status: 'live',
      createdAt: '2025-11-18T14:05:59.000Z',
      expiresAt: null,
      revokedAt: null,
      lastUsedAt: '2025-11-19T04:05:59.000Z',
    });
    expect(rows.slice(1)).toMatchObject([{ status: 'expired' }, { status: 'revoked' }]);
  });

  describe('revoke', () => {
    it('ends all live tokens of a name, and says which', async () => {
      for (const name of ['shed', 'barn', 'shed']) await create(name);
      const [first, , third] = await ids();
      const { exitCode, stdout, stderr } = await token('revoke', 'shed', '--yes');
      expect([exitCode, stdout]).toEqual([0, '']);
      const entries = stderr.trimEnd().split('\n');
      expect(entries.map((entry) => JSON.parse(entry) as object)).toMatchObject(
        [first, third].map((id) => ({
          token: 'shed',
          tokenId: id,
          msg: `Revoked the token shed (${id}).`,
        })),
      );
      expect(await areRevoked()).toEqual([true, false, true]);
      const again = await token('revoke', 'shed', '--yes');
      expect(again).toEqual({ exitCode: 1, stdout: '', stderr: NO_LIVE_TOKEN });
    });

    it('ends only the token with an id, even if the id is the name of another one', async () => {
      await create('greenhouse');
      const [id] = await ids();
      await create(id!);
      expect(await token('revoke', id!, '--yes')).toMatchObject({ exitCode: 0 });
      expect(await areRevoked()).toEqual([true, false]);
    });

    it('accepts a token that leaked', async () => {
      const leaked = await create('greenhouse');
      await create('shed');
      for (const exitCode of [0, 1]) {
        // A line end is in a variable that was read from a file of Windows.
        expect(await token('revoke', `${leaked}\r`, '--yes')).toMatchObject({ exitCode });
      }
      expect(await areRevoked()).toEqual([true, false]);
    });

    it.each([
      [undefined, 1, /^This revokes .+ Add --yes if that is what you want\.\n$/],
      ['yes\n', 0, /^This revokes greenhouse \([0-9a-f]{12}\) within five seconds/],
      [' Y\n', 0, /^This revokes /],
      ['\n', 1, /^This revokes [^]+Nothing was changed\.\n$/],
      ['yesterday\n', 1, /^This revokes /],
      ['', 1, /^This revokes /],
    ])('asks a person at a terminal, who types %j', async (typed, exitCode, message) => {
      await create('greenhouse');
      const surroundings = typed === undefined ? {} : { typed };
      const revoked = await tokenIn(surroundings, 'revoke', 'greenhouse');
      expect(revoked).toMatchObject({ exitCode, stdout: '' });
      expect(revoked.stderr).toMatch(message);
      expect(await areRevoked()).toEqual([exitCode === 0]);
    });
  });

  describe('rotate', () => {
    it('prints a new token with the lifetime of the newest; the old ones work until the grace period ends', async () => {
      for (const lifetime of [90 * 24, 1, 30 * 24]) await create('greenhouse', lifetime);
      const old = await create('greenhouse', 7 * 24);
      await create('shed');
      await age();
      const created = await token('rotate', 'greenhouse', '--grace', '2h');
      expect(created).toMatchObject({ exitCode: 0, stderr: ROTATED });
      expect(await status(old)).toBe(200);
      expect(await status(created.stdout)).toBe(200);
      expect(await hours()).toEqual([2, 1, 2, 2, null, 7 * 24]);
      const [first, , , , , last] = await stored();
      const end = first!.expiresAt!.toISOString().slice(0, 16).replace('T', ' ');
      expect(JSON.parse(created.stderr)).toMatchObject({
        token: 'greenhouse',
        tokenId: last!.id,
        msg: expect.stringContaining(` ${first!.id} works until ${end}Z.`),
      });
    });

    it('--expires sets the lifetime of the new token; the old one works for 24 hours if no grace period is given', async () => {
      await create('greenhouse');
      await age();
      await token('rotate', 'greenhouse', '--expires', '7d');
      expect(await hours()).toEqual([24, 7 * 24]);
    });

    it('gives the lifetime of the name if its only live token is in its grace period', async () => {
      await create('greenhouse', 30 * 24);
      await age();
      await token('rotate', 'greenhouse', '--grace', '1h');
      await token('revoke', (await ids())[1]!, '--yes');
      await age();
      expect(await token('rotate', 'greenhouse', '--grace', '1h')).toMatchObject({ exitCode: 0 });
      expect(await hours()).toEqual([1, 30 * 24, 30 * 24]);
    });

    it.each([
      ['0', 'within five seconds'],
      ['1s', 'in 1 second'],
      ['59m', 'in 59 minutes'],
    ])('asks for a confirmation of the grace period %s', async (grace, end) => {
      await create('greenhouse');
      const warning = `The current tokens of this name stop working ${end}. This cannot be undone.`;
      const rotated = await tokenIn({ typed: 'n\n' }, 'rotate', 'greenhouse', '--grace', grace);
      expect(rotated).toMatchObject({ exitCode: 1, stdout: '' });
      expect(rotated.stderr.startsWith(warning)).toBe(true);
      expect(await lifetimes()).toEqual([null]);
    });

    it('--grace 0 --yes ends the old token within seconds', async () => {
      const old = await create('greenhouse');
      const [id] = await ids();
      const created = await token('rotate', 'greenhouse', '--grace', '0', '--yes');
      expect(created.stderr).toContain(` ${id} stops working within five seconds.`);
      expect(await status(old)).toBe(401);
      expect(await status(created.stdout)).toBe(200);
    });

    /** Starts commands while another session has changed or locked all tokens, and commits when they wait for that. */
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

    it('makes no token if the last one is revoked meanwhile', async () => {
      await create('greenhouse');
      const revoke = 'UPDATE access_tokens SET revoked_at = now()';
      const [rotated] = await whileLocked(revoke, ['rotate', 'greenhouse']);
      expect(rotated).toEqual({ exitCode: 1, stdout: '', stderr: NO_LIVE_TOKEN });
      expect(await areRevoked()).toEqual([true]);
    });

    it('twice at the same time makes two tokens with the lifetime of the name', async () => {
      const old = await create('greenhouse', 30 * 24);
      await age();
      const rotate = ['rotate', 'greenhouse', '--grace', '1h'];
      const lock = 'SELECT 1 FROM access_tokens FOR UPDATE';
      const [first, second] = await whileLocked(lock, rotate, rotate);
      for (const secret of [old, first!.stdout, second!.stdout])
        expect(await status(secret)).toBe(200);
      expect(await hours()).toEqual([1, 30 * 24, 30 * 24]);
    });
  });

  it('no token, and no part of one, is a name', async () => {
    const whole = generateAccessToken();
    for (const name of [`my ${whole}`, whole.slice(0, 20), whole.replace('plant', 'Plant')]) {
      for (const command of ['create', 'rotate']) {
        expect(await token(command, name)).toMatchObject({
          exitCode: 2,
          stdout: '',
          stderr: expect.stringMatching(/^This is a token or a part of one, not a name: .+\n$/),
        });
      }
    }
  });

  it('a name that begins with - comes last, after --, as the usage says', async () => {
    expect(await token('revoke', '-shed')).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining('after --\n'),
    });
    for (const words of [['create'], ['rotate', '--expires', '1d'], ['revoke', '--yes']]) {
      expect(await token(...words, '--', '-shed')).toMatchObject({ exitCode: 0 });
    }
    expect(await areRevoked()).toEqual([true, true]);
  });

  it.each([
    [['rotate', 'nobody', '--grace', '0'], 1, /^There is no live token of this name.*\n$/],
    [['revoke'], 2, /missing required argument 'name\|id\|token'/],
    [['revoke', 'green', 'house', '--yes'], 2, /too many arguments/],
    [['revoke', 'nobody', '--force'], 2, /unknown option '--force'/],
    [['create', 'x', '--expires', '1h30m'], 2, /Use a number of up to four digits and a unit/],
    [['create', 'x', '--expires', '0s'], 2, /would never work/],
    [['destroy', '--help'], 2, /unknown command 'destroy'/],
    [['create', '--help'], 0, /^$/],
  ])('%j ends with exit code %d', async (args, exitCode, reason) => {
    const result = await token(...args);
    expect(result.exitCode).toBe(exitCode);
    expect(result.stdout).toMatch(exitCode === 0 ? /--expires <duration>/ : /^$/);
    expect(result.stderr).toMatch(reason);
    expect(await stored()).toEqual([]);
  });

  describe('as a process', () => {
    it('show help without an error if the program that reads it has ended', async () => {
      const help = runCommand(['dist/cli.js', 'token', '--help'], settings());
      help.process.stdout.destroy();
      expect(await help.exit()).toBe(0);
      expect(help.stderr).toBe('');
    });

    it('do their work even if standard error cannot be written', async () => {
      await create('greenhouse');
      const revoke = ['dist/cli.js', 'token', 'revoke', 'greenhouse', '--yes'];
      const shell = ['-c', 'exec "$@" 2>/dev/full', 'sh', ...NODE, ...revoke];
      expect(await runProgram('sh', shell, settings()).exit()).toBe(0);
      expect(await areRevoked()).toEqual([true]);
    });
  });
});
