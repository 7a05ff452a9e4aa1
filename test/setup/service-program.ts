import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ROOT } from './command.js';

/** Creates a token, which also makes the schema. */
export async function createToken(databaseUrl: string, name: string): Promise<string> {
  const args = [join(ROOT, 'dist/cli.js'), 'token', 'create', name];
  const env = { PATH: process.env['PATH'], DATABASE_URL: databaseUrl };
  // Elsewhere a file .env of the developer would be read, which may name another database.
  const { stdout } = await promisify(execFile)(process.execPath, args, { env, cwd: '/' });
  return stdout.trim();
}

/** Whether a service accepts plants now. */
export function isReady(url: string): Promise<boolean> {
  return fetch(`${url}/health/ready`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.ok;
    },
    () => false,
  );
}
