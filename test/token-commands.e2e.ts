import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { runCommand } from './setup/command.js';
import { startService, type TestService } from './setup/service.js';

describe('the token commands, beside a running service', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE access_tokens'));
  afterAll(() => service.close());

  async function token(...args: string[]) {
    const command = runCommand(['dist/cli.js', 'token', ...args], {
      DATABASE_URL: service.database.url,
    });
    const exitCode = await command.exit();
    return { exitCode, stdout: command.stdout, stderr: command.stderr };
  }

  const status = async (secret: string) =>
    (await service.post('{"id":1,"name":"a"}', { authorization: `Bearer ${secret.trim()}` }))
      .status;

  const list = async () =>
    JSON.parse((await token('list', '--json')).stdout) as Record<string, string | null>[];

  it('create prints the token and nothing else', async () => {
    const created = await token('create', 'greenhouse');
    expect(created).toMatchObject({ exitCode: 0, stderr: '' });
    expect(created.stdout).toMatch(/^plantstore_[0-9A-Za-z]{49}\n$/);
    expect(await status(created.stdout)).toBe(200);
    expect(await list()).toMatchObject([{ name: 'greenhouse', status: 'live', expiresAt: null }]);
  });

  it('create --expires sets the end', async () => {
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

  it('revoke ends all tokens of a name, or the one of an id', async () => {
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

  it('revoke asks first, and does nothing where nobody can answer', async () => {
    await token('create', 'greenhouse');
    expect(await token('revoke', 'greenhouse')).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining('--yes'),
    });
    expect(await list()).toMatchObject([{ status: 'live' }]);
  });

  it('rotate prints a new token; the old one ends after the grace', async () => {
    const old = await token('create', 'greenhouse', '--expires', '30d');
    const created = await token('rotate', 'greenhouse', '--grace', '1h');
    expect(created).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await status(old.stdout)).toBe(200);
    expect(await status(created.stdout)).toBe(200);
    const [first, second] = await list();
    const hours = (row: typeof first) =>
      Math.round((Date.parse(row!['expiresAt']!) - Date.parse(row!['createdAt']!)) / 3_600_000);
    expect([hours(first), hours(second)]).toEqual([1, 30 * 24]);
  });

  it('revoke takes a token that leaked, and never repeats it', async () => {
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

  it('revoke by id ends that token only, whatever others are called', async () => {
    await token('create', 'greenhouse');
    const [greenhouse] = await list();
    await token('create', greenhouse!['id']!);
    await token('revoke', greenhouse!['id']!, '--yes');
    expect((await list()).map((row) => row['status'])).toEqual(['revoked', 'live']);
  });

  it('rotate --grace 0 ends the old one at once, and asks first', async () => {
    const old = await token('create', 'greenhouse');
    expect(await token('rotate', 'greenhouse', '--grace', '0')).toMatchObject({ exitCode: 1 });
    const created = await token('rotate', 'greenhouse', '--grace', '0', '--yes');
    expect(await status(old.stdout)).toBe(401);
    expect(await status(created.stdout)).toBe(200);
  });

  it.each([
    [['revoke', 'nobody', '--yes'], 1, 'There is no live token "nobody"'],
    [['rotate', 'nobody'], 1, 'There is no live token "nobody"'],
    [['create'], 2, "missing required argument 'name'"],
    [['create', ''], 2, 'A name has 1 to 100'],
    [['create', 'x', '--expires', 'soon'], 2, 'Use a number and a unit'],
    [['create', 'x', '--expires', '0s'], 2, 'would never work'],
    [['create', '\u200b'], 2, 'visible characters'],
    [['rotate', 'x', '--grace', '1s'], 1, '--yes'],
    [['create', 'x', 'y'], 2, 'too many arguments'],
    [['destroy', 'x'], 2, "unknown command 'destroy'"],
  ])('%j ends with exit code %d and says why', async (args, exitCode, reason) => {
    const result = await token(...args);
    expect(result).toMatchObject({ exitCode, stdout: '' });
    expect(result.stderr).toContain(reason);
    expect(await list()).toEqual([]);
  });

  it('help is help', async () => {
    const help = await token('create', '--help');
    expect(help.exitCode).toBe(0);
    expect(help.stdout).toContain('--expires');
  });
});
