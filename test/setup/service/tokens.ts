import { runCommand } from '../process/command.js';

/** Creates a token with the command, as for a service in a process of its own; this also makes the schema. */
export function createToken(databaseUrl: string, name = 'test'): Promise<string> {
  return runCli(databaseUrl, ['token', 'create', name]);
}

/** Revokes all tokens with this name. */
export async function revokeToken(databaseUrl: string, name: string): Promise<void> {
  await runCli(databaseUrl, ['token', 'revoke', name, '--yes']);
}

/** @returns what the command printed on standard output */
async function runCli(databaseUrl: string, args: readonly string[]): Promise<string> {
  // In the project, a file .env of the developer would be read, which may name another database.
  const command = runCommand(['dist/cli.js', ...args], { DATABASE_URL: databaseUrl }, '/');
  if ((await command.exit()) !== 0) throw new Error(`${args.join(' ')} failed: ${command.stderr}`);
  return command.stdout.trim();
}
