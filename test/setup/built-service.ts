import { expect } from '@jest/globals';
import { untilIdleAt } from './clean-state.js';
import { runCommand, type Command } from './command.js';
import { fetchDocumented } from './fetch-documented.js';
import { METRICS_SETTING } from './metrics.js';

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
  const command = runCommand(['dist/main.js'], {
    PORT: '0',
    DATABASE_URL: databaseUrl,
    ...METRICS_SETTING,
    ...env,
  });
  const [, url] = await command.waitFor(/listens on (http:[^"]+)/);
  return { command, url: url! };
}

/**
 * Stops a service gracefully, when its requests have ended.
 *
 * @throws Error when it still holds what a request took
 */
export async function stop(service: BuiltService): Promise<void> {
  await untilIdleAt(service.url).finally(() => stopUnderLoad(service));
}

/** Stops a service gracefully while it gets requests. */
export async function stopUnderLoad({ command }: BuiltService): Promise<void> {
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
