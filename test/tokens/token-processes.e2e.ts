import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AccessTokensService } from '../../src/auth/access-tokens.service.js';
import type { CommandResult } from '../setup/service/cli.js';
import { NODE, runCommand, runProgram } from '../setup/process/command.js';
import { startService, type TestService } from '../setup/service/service.js';

describe('a token command, as a process', () => {
  let service: TestService;

  beforeAll(async () => {
    service = await startService();
  });
  beforeEach(() => service.database.query('TRUNCATE access_tokens'));
  afterAll(() => service.close());

  const settings = () => ({ DATABASE_URL: service.database.url });
  const tokens = () => service.app.get(AccessTokensService);

  /** Runs a command with its streams redirected by the shell, such as `>&-`. */
  async function execute(redirection: string, ...args: string[]): Promise<CommandResult> {
    const command = runProgram(
      'sh',
      ['-c', `exec "$@" ${redirection}`, 'sh', ...NODE, 'dist/cli.js', 'token', ...args],
      settings(),
    );
    const exitCode = await command.exit();
    return { exitCode, stdout: command.stdout, stderr: command.stderr };
  }

  it('shows help without an error if the program that reads it has ended', async () => {
    const help = runCommand(['dist/cli.js', 'token', '--help'], settings());
    help.process.stdout.destroy();
    expect(await help.exit()).toBe(0);
    expect(help.stderr).toBe('');
  });

  it('does its work even if standard error cannot be written', async () => {
    await tokens().create('greenhouse');
    expect(await execute('2>/dev/full', 'revoke', 'greenhouse', '--yes')).toMatchObject({
      exitCode: 0,
    });
    expect(await tokens().list()).toMatchObject([{ revokedAt: expect.any(Date) }]);
  });

  // More than two pages of the query, and more than a pipe holds.
  it('list shows 12,000 tokens, the oldest first', async () => {
    await service.database.query(`
      INSERT INTO access_tokens (id, name, hash, created_at)
      SELECT substr(md5(i::text), 1, 12), i::text, sha256(i::text::bytea), now() - i * interval '1 second'
      FROM generate_series(1, 12000) AS i`);
    const table = await execute('', 'list');
    expect(table).toMatchObject({ exitCode: 0, stderr: '' });
    const names = table.stdout
      .trimEnd()
      .split('\n')
      .slice(1)
      .map((line) => Number(line.split(/ +/)[1]));
    expect(names).toEqual(Array.from({ length: 12_000 }, (_, i) => 12_000 - i));
  });
});
