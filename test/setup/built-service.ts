import { expect } from '@jest/globals';
import { runCommand, type Command } from './command.js';
import { fetchDocumented } from './fetch-documented.js';

/** A built service, as an operator runs it. */
export interface BuiltService {
  readonly command: Command;
  readonly url: string;
}

/** Starts a built service on a database. */
export async function startOn(
  databaseUrl: string,
  env: Record<string, string> = {},
): Promise<BuiltService> {
  const command = runCommand(['dist/main.js'], { PORT: '0', DATABASE_URL: databaseUrl, ...env });
  const [, url] = await command.waitFor(/listens on (http:[^"]+)/);
  return { command, url: url! };
}

/** Stops a service gracefully. */
export async function stop({ command }: BuiltService): Promise<void> {
  command.process.kill('SIGTERM');
  expect(await command.exit()).toBe(0);
}

export async function createToken(databaseUrl: string): Promise<string> {
  const create = runCommand(['dist/cli.js', 'token', 'create', 'load'], {
    DATABASE_URL: databaseUrl,
  });
  expect(await create.exit()).toBe(0);
  return create.stdout.trim();
}

export function postPlant({ url }: BuiltService, token: string, id: number): Promise<Response> {
  return fetchDocumented(`${url}/plants`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id, name: 'a' }),
  });
}
