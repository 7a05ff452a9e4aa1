import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from '../setup/service/command.js';

/** Creates a token, which also makes the schema. */
export async function createToken(databaseUrl: string, name: string): Promise<string> {
  return (await runCli(databaseUrl, ['token', 'create', name])).trim();
}

/** Revokes all tokens with this name. */
export async function revokeToken(databaseUrl: string, name: string): Promise<void> {
  await runCli(databaseUrl, ['token', 'revoke', name, '--yes']);
}

/** @returns what the command printed on standard output */
async function runCli(databaseUrl: string, args: readonly string[]): Promise<string> {
  const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl };
  const script = join(ROOT, 'dist/cli.js');
  // Elsewhere a file .env of the developer would be read, which may name another database.
  const run = promisify(execFile)(process.execPath, [script, ...args], { env, cwd: '/' });
  return (await run).stdout;
}
